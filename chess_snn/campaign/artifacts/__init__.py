"""Artifacts that a campaign stores: one table, over which verify, rebuild and gc are loops."""
