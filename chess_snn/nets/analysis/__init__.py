"""Measurements of a network: operations, spikes and energy; and files for other libraries."""
