"""``chess-snn perft``: count the leaves of the game tree, to check the rules."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from chess_snn.later import to_run

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.games import get_game
    from chess_snn.games.chess import perft, perft_divide

_START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"

_DEEPEST = 12
"""Deeper searches take too long; Ctrl-C ends one."""


def perft_command(
    fen: Annotated[str, typer.Argument(help='A position in FEN, or "startpos".')],
    depth: Annotated[int, typer.Argument(min=0, max=_DEEPEST, help="Plies to look ahead.")],
    divide: Annotated[bool, typer.Option(help="Count for each first move.")] = False,
) -> None:
    """Count the positions reached after DEPTH plies.

    Published counts exist for many positions, which makes this a test of the rules:

    chess-snn perft startpos 5
    """
    state = get_game("chess").parse_state(_START if fen == "startpos" else fen)
    start = time.perf_counter()
    if divide and depth > 0:
        counts = perft_divide(state, depth)
        for move, count in counts.items():
            typer.echo(f"{move}: {count}")
        total = sum(counts.values())
    else:
        total = perft(state, depth)
    seconds = time.perf_counter() - start
    typer.echo(total)
    typer.echo(f"{seconds:.2f} s, {total / max(seconds, 1e-9) / 1e6:.1f} million/s", err=True)
