"""What is known of each network, and networks on their own."""
