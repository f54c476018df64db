"""Check a campaign, repair it, rebuild what is corrupt, and delete what is no longer needed."""
