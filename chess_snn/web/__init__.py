"""A page in the browser: play, watch a search, read a campaign."""
