"""Resources of a machine: workers, their slots, and how fast it all is."""
