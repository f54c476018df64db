"""Benchmarks: not installed with chess-snn; run them in a clone with ``python -m benchmarks``."""
