"""What a machine gives: workers, their places, and how fast it all is."""
