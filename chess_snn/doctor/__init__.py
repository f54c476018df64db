"""What this machine has that campaigns need, and what is wrong with it."""
