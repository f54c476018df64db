"""Strength of generations: matches, ladder tests, gating matches, champions and ratings."""
