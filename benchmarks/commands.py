"""The commands of ``python -m benchmarks``; a module is imported when its command is run."""

from typing import Final

import typer

from chess_snn.cli.main import CommandEntry, LazyGroup

_SUMMARIES: Final = {
    "env": "Rules and bitplanes on one core: chess beside python-chess, or 2048.",
    "folder": "Starting, watching and verifying a campaign of very many shards.",
    "import": "From PGN to shards on two processes, beside python-chess.",
    "net": "The network alone, beside its ReLU baseline, the machine's peak and other libraries.",
    "search": "Tree search, alone and with a network, beside OpenSpiel's.",
    "selfplay": "Self-play, beside one game at a time with a batch of one.",
    "store": "Writing and reading shards, and sampling from the window.",
    "train": "Training steps, spiking and ReLU, in both precisions, beside other libraries.",
    "workers": "One worker beside two, the cost of orchestration, and thousands of shards.",
    "export": "Networks exported as NIR and ONNX, run by the libraries that read them.",
    "layers": "Integer neurons on a CPU: all convolutions as one kernel, beside one call for each.",
    "gpu": "Every figure that needs a GPU: neurons, inference, training, self-play.",
    "device": "How busy self-play keeps a GPU, by groups and cores, without a GPU.",
    "learn": "Train for some minutes without Prefect, then play matches.",
    "ablations": "Campaigns of equal length, with one part of the recipe switched off in each.",
    "ladder": "Play the ladder's round-robin again, and rate its players.",
    "mates": "How many mates a network finds with its search.",
    "uci-stop": "How soon `chess-snn uci` answers `stop`.",
    "uci-games": "Games of `chess-snn uci` with clocks, under python-chess.",
    "web": "How soon the page of `chess-snn web` answers, in a headless Chromium.",
}
_MODULES: Final = {
    "import": "import_games", "selfplay": "self_play",
    "uci-stop": "uci_stop", "uci-games": "uci_games", "web": "web_answer",
}
"""Where the module is not named like its command."""


class _Benchmarks(LazyGroup):
    table = tuple(
        CommandEntry(name, f"benchmarks.{_MODULES.get(name, name)}:command", summary)
        for name, summary in _SUMMARIES.items()
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
