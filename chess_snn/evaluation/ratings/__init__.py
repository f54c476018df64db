"""Ratings from all games at once, with intervals."""
