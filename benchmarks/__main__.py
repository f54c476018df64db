"""``python -m benchmarks NAME``; errors and Ctrl-C as those of ``chess-snn``."""

from benchmarks.commands import app
from chess_snn.cli.main import run_app

run_app(app, "python -m benchmarks")
