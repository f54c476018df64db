"""What a machine gives: workers, their slots, and how fast it all is."""
