"""Facts about each network, and networks on their own."""
