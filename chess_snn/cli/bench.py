"""``chess-snn bench``: the benchmarks of a clone, which are not part of the installed package."""

import importlib
import sys
from pathlib import Path

import typer

import chess_snn
from chess_snn.errors import UsageError

_ROOT = Path(chess_snn.__file__).parents[1]


def load_benchmarks() -> typer.Typer:
    """The commands of ``benchmarks/``, beside the package.

    Raises:
        UsageError: chess-snn was installed without its repository.
    """
    if not (_ROOT / "benchmarks" / "commands.py").exists():
        raise UsageError(
            "the benchmarks are not part of the installed package; clone the repository of "
            "chess-snn and run `python -m benchmarks` there"
        )
    sys.path.insert(0, str(_ROOT))
    app: typer.Typer = importlib.import_module("benchmarks.commands").app
    return app


app = load_benchmarks()
