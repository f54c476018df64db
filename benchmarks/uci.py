"""``chess-snn uci`` as a GUI sees it: how soon it answers ``stop``, and games with clocks.

The games are played under python-chess from random openings of four plies, with both colours.
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

from benchmarks.harness import Report, benchmark, chosen_parts

_MOST_PLIES: Final = 400
_RESULTS: Final = ("won", "drawn", "lost")
_START_S: Final = 120.0
"""Time in which the engine compiles its kernels."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Engines to measure, and how the games are played."""

    ours: list[str]
    """Command of our engine."""
    stops: int
    """Searches to stop."""
    limit_ms: float
    """Bar of the slowest answer to ``stop``."""
    opponent: str
    """Command of the other engine."""
    nodes: int
    """Nodes of the other engine for a move."""
    games: int
    clock_s: float
    increment_s: float


def stop(report: Report, conditions: Conditions) -> None:
    """Add how soon searches end that are stopped at random moments of one random game."""
    stream, board, waits_ms = random.Random(0), chess.Board(), []
    with chess.engine.SimpleEngine.popen_uci(conditions.ours, timeout=_START_S) as engine:
        engine.ping()
        for _ in range(conditions.stops):
            if board.is_game_over():
                board.reset()
            board.push(stream.choice(list(board.legal_moves)))
            if board.is_game_over():
                continue
            with engine.analysis(board) as search:
                time.sleep(stream.uniform(0.01, 2.0))
                start = time.perf_counter()
                search.stop()
                search.wait()
                waits_ms.append(1000 * (time.perf_counter() - start))
    report.add_waits("stop", waits_ms, conditions.limit_ms, limited_share=1.0)


def games(report: Report, conditions: Conditions) -> None:
    """Add the results; each illegal move, loss on time, crash or missing game misses a bar."""
    counts: collections.Counter[str] = collections.Counter()
    for color, ending in _play_all(conditions):
        counts[ending] += 1
        report.progress(f"game {counts.total()}: {'white' if color else 'black'}, {ending}")
    for result in _RESULTS:
        report.add(result, counts[result], "games")
    for fault in sorted(set(counts) - set(_RESULTS)):
        report.add(fault, counts[fault], "games", at_most=0)
    report.add("missing", conditions.games - counts.total(), "games", at_most=0)


PARTS: Final = {"stop": stop, "games": games}


def run(
    report: Report,
    model: Annotated[str, typer.Option(help="Campaign, model or file of the network.")],
    part: Annotated[list[str] | None, typer.Option(help="stop or games; both by default.")] = None,
    threads: Annotated[int, typer.Option(help="Threads of our engine.")] = 1,
    stops: Annotated[int, typer.Option(help="Searches to stop.")] = 100,
    limit_ms: Annotated[float, typer.Option(help="Bar of the slowest answer to stop.")] = 100.0,
    opponent: Annotated[str, typer.Option(help="Command of the other engine.")] = "stockfish",
    nodes: Annotated[int, typer.Option(help="Of the other engine, a move.")] = 100,
    games: Annotated[int, typer.Option(help="How many.")] = 20,
    clock_s: Annotated[float, typer.Option(help="Clock of our engine.")] = 20.0,
    increment_s: Annotated[float, typer.Option(help="Increment a move.")] = 0.1,
) -> None:
    """How soon `chess-snn uci` answers `stop`, and games with clocks.

    Exits with 1 after a slow answer, an illegal move, a loss on time, a crash or a missing game.

    taskset -c 0 python -m benchmarks uci --model campaigns/small-001 --part stop
    """
    ours = [
        sys.executable, "-m", "chess_snn", "uci", "--model", model, "--threads", str(threads),
    ]
    conditions = Conditions(ours, stops, limit_ms, opponent, nodes, games, clock_s, increment_s)
    for measure in chosen_parts(PARTS, part).values():
        measure(report, conditions)


command = benchmark("uci", run)


def random_opening(number: int) -> chess.Board:
    """The position after four random plies, a function of ``number``."""
    board, stream = chess.Board(), random.Random(number)
    for _ in range(4):
        board.push(stream.choice(list(board.legal_moves)))
    return board


def _play_all(conditions: Conditions) -> Iterator[tuple[chess.Color, str]]:
    """Our colour and the ending of each game."""
    with (
        chess.engine.SimpleEngine.popen_uci(conditions.ours, timeout=_START_S) as engine,
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
