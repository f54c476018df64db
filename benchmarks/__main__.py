"""``python -m benchmarks NAME``; errors and Ctrl-C as those of ``chess-snn``."""

from typing import Final

import typer

from chess_snn.cli.main import CommandEntry, LazyGroup, run_app

_COMMANDS: Final = (
    ("env", "env", "Rules on one core: chess beside python-chess, or 2048."),
    ("net", "net", "The network alone, beside its baseline and other libraries."),
    ("search", "search", "Tree search, alone and with a network, beside OpenSpiel's."),
    ("selfplay", "self_play", "Self-play, beside one game at a time with a batch of one."),
    ("store", "store", "Writing and reading shards, and sampling from the window."),
    ("folder", "folder", "Starting, watching, verifying a folder of many shards."),
    ("train", "train", "Training steps, beside the baseline and other libraries."),
    ("workers", "workers", "One worker beside two, and the cost of orchestration."),
    ("export", "export", "Exported networks in the libraries that read NIR and ONNX."),
    ("gpu", "gpu", "Every figure that needs a GPU."),
    ("ladder", "ladder", "Play the ladder's round-robin again, and rate its players."),
    ("mates", "mates", "How many mates a network finds with its search."),
    ("startup", "startup", "How soon commands answer, beside Python and torch alone."),
    ("uci", "uci", "How soon `chess-snn uci` stops, and games with clocks."),
    ("web", "web", "How soon the page of `chess-snn web` answers a move."),
)
"""Name, module and summary; a module is imported when its command is run."""


class _Benchmarks(LazyGroup):
    table = tuple(
        CommandEntry(name, f"benchmarks.{module}:command", summary)
        for name, module, summary in _COMMANDS
    )


app = typer.Typer(
    cls=_Benchmarks, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _describe() -> None:
    """Measure one part of the system, beside what it is compared with, in one run.

    Exits with 1 if a figure misses its bar, except with --quick.
    """


if __name__ == "__main__":
    run_app(app, "python -m benchmarks")
