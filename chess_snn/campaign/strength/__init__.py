"""How strong generations are: matches, ladder tests, gating matches, champions and ratings."""
