"""The calibrated ladder: players of known strength, made, read, checked and played."""
