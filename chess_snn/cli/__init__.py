"""The command line: ``chess-snn``."""

from chess_snn.cli.main import main

__all__ = ["main"]
