"""What ``chess-snn bench`` measures of the orchestration, and so cannot live in the library."""
