"""What a campaign stores: one table, over which verify, rebuild, gc and backup are loops."""
