"""The calibrated ladder: players of known strength, read and met."""
