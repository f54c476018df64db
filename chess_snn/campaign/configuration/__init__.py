"""Settings: what they are, where they come from, and their reference."""
