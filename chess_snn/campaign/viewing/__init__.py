"""How a campaign goes, for those who look from outside."""
