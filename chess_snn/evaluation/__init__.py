"""Players, the matches between them, and what a score is worth."""
