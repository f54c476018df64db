"""Views of a campaign from outside."""
