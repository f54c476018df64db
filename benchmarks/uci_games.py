"""Games of ``chess-snn uci`` with clocks against another UCI engine.

Plays with both colours from random openings of four plies, under python-chess.
"""

import collections
import random
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final

import chess
import chess.engine
import typer

from benchmarks.report import Report, benchmark

_MOST_PLIES: Final = 400
_RESULTS: Final = ("won", "drawn", "lost")


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the games are played."""

    ours: list[str]
    """Command of our engine."""
    opponent: str
    """Command of the other engine."""
    nodes: int
    """Of the other engine, a move."""
    games: int
    clock_s: float
    increment_s: float


def run(
    report: Report,
    model: Annotated[str, typer.Option(help="Campaign, model or file of the network.")],
    opponent: Annotated[str, typer.Option(help="Command of the other engine.")] = "stockfish",
    nodes: Annotated[int, typer.Option(help="Of the other engine, a move.")] = 100,
    games: Annotated[int, typer.Option(help="How many.")] = 20,
    clock_s: Annotated[float, typer.Option(help="Clock of our engine.")] = 20.0,
    increment_s: Annotated[float, typer.Option(help="Increment a move.")] = 0.1,
) -> None:
    """Games of `chess-snn uci` with clocks, under python-chess.

    Exits with 1 after an illegal move, a loss on time, a crash or a missing game.

    python -m benchmarks uci-games --model campaigns/cpu-001
    """
    ours = [sys.executable, "-m", "chess_snn", "uci", "--model", model]
    conditions = Conditions(ours, opponent, nodes, games, clock_s, increment_s)
    counts: collections.Counter[str] = collections.Counter()
    for color, ending in _play_all(conditions):
        counts[ending] += 1
        report.progress(f"game {counts.total()}: {'white' if color else 'black'}, {ending}")
    for result in _RESULTS:
        report.add(result, counts[result], "games")
    for fault in sorted(set(counts) - set(_RESULTS)):
        report.add(fault, counts[fault], "games", at_most=0)
    report.add("missing", games - counts.total(), "games", at_most=0)


command = benchmark("uci-games", run)


def random_opening(number: int) -> chess.Board:
    """The position after four random plies, a function of ``number``."""
    board, stream = chess.Board(), random.Random(number)
    for _ in range(4):
        board.push(stream.choice(list(board.legal_moves)))
    return board


def _play_all(conditions: Conditions) -> Iterator[tuple[chess.Color, str]]:
    """Our colour and the ending of each game."""
    with (
        chess.engine.SimpleEngine.popen_uci(conditions.ours, timeout=120) as engine,
        chess.engine.SimpleEngine.popen_uci(shlex.split(conditions.opponent)) as opponent,
    ):
        engine.timeout = opponent.timeout = 60 + conditions.clock_s
        engine.ping()  # compiles kernels; no clock runs before readyok
        for number in range(conditions.games):
            color = number % 2 == 0
            yield color, _play(engine, opponent, color, number, conditions)


def _play(
    engine: chess.engine.SimpleEngine, opponent: chess.engine.SimpleEngine, color: chess.Color,
    number: int, conditions: Conditions,
) -> str:
    board, clock_s = random_opening(number // 2), conditions.clock_s
    while not board.is_game_over(claim_draw=True) and board.ply() < _MOST_PLIES:
        if board.turn != color:
            limit = chess.engine.Limit(nodes=conditions.nodes)
            theirs = opponent.play(board, limit, game=number).move
            assert theirs is not None
            board.push(theirs)
            continue
        limit = chess.engine.Limit(
            white_clock=clock_s, black_clock=clock_s,
            white_inc=conditions.increment_s, black_inc=conditions.increment_s,
        )
        start = time.perf_counter()
        try:
            move = engine.play(board, limit, game=number).move
        except chess.engine.EngineTerminatedError:
            return "engine died"
        except chess.engine.EngineError:
            return "illegal move"
        clock_s -= time.perf_counter() - start
        if clock_s < 0:
            return "lost on time"
        clock_s += conditions.increment_s
        if move is None:
            return "no move"
        board.push(move)
    outcome = board.outcome(claim_draw=True)
    if outcome is None or outcome.winner is None:
        return "drawn"
    return "won" if outcome.winner == color else "lost"
