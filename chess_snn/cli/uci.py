"""``chess-snn uci``: a network as an engine for chess programs."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from chess_snn.cli.options import NETWORK, NetworkDeviceOption
from chess_snn.cores import num_cores
from chess_snn.known import MAX_SIMULATIONS, SHIPPED_CHESS, SHIPPED_MODELS
from chess_snn.later import to_run
from chess_snn.uci import Options

if TYPE_CHECKING:
    from chess_snn.api.network import Net
if TYPE_CHECKING or to_run(__name__):
    from chess_snn.games import get_game
    from chess_snn.uci import Session

_GAME: Final = "chess"
"""The only one that UCI knows."""


def load_chess(text: str) -> Net:
    """The network of chess that ``text`` names, loaded."""
    from chess_snn.api.network import load  # noqa: PLC0415 - once `uciok` is said
    return load(text, game=_GAME)


def uci_command(
    model: Annotated[str, typer.Option(**NETWORK)] = SHIPPED_CHESS,
    simulations: Annotated[
        int, typer.Option(help=f"Of a go that names no limit, 1 to {MAX_SIMULATIONS:,}.")
    ] = Options().simulations,
    threads: Annotated[int, typer.Option(help="Of the network; 0 takes every core.")] = 1,
    device: NetworkDeviceOption = "cpu",
) -> None:
    """Speak UCI, for chess programs and lichess-bot.

    These options are the defaults of the engine's own; a GUI may change all of them.

    chess-snn uci --model campaigns/cpu-001
    """
    options = Options(
        model=model, simulations=simulations, threads=threads or num_cores(), device=device
    )
    if model and model not in SHIPPED_MODELS:
        from chess_snn.campaign.models.references import find_model  # noqa: PLC0415 - takes 0.2 s
        find_model(model, game=_GAME)  # report a missing model before the UCI handshake
    # Input may be any bytes, and answers may quote it.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    Session(get_game(_GAME), load_chess, _tell, options).run(_lines())


def _lines() -> Iterator[str]:
    """Standard input in UTF-8, or in UTF-16 after the byte-order mark that Windows writes."""
    stream = cast(io.BufferedReader, sys.stdin.buffer)
    is_utf16 = stream.peek(2).startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    yield from io.TextIOWrapper(stream, "utf-16" if is_utf16 else "utf-8-sig", "replace")


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
