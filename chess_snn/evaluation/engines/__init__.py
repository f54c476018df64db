"""Other people's engines as players: programs that speak UCI, asked from their own processes."""
