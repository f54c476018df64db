"""How soon ``chess-snn uci`` answers ``stop``, as a GUI sees it."""

import random
import subprocess
import sys
import time
from typing import IO, Annotated

import chess
import typer

from benchmarks.report import Report, benchmark
from chess_snn.errors import EngineError


def run(
    report: Report,
    model: Annotated[str, typer.Option(help="Campaign, model or file of the network.")],
    times: Annotated[int, typer.Option(help="Searches to stop.")] = 100,
    threads: Annotated[int, typer.Option(help="Threads of the engine.")] = 1,
    limit_ms: Annotated[float, typer.Option(help="Bar of the slowest answer.")] = 100.0,
) -> None:
    """How soon `chess-snn uci` answers `stop`.

    Stops searches of positions of one random game at random moments.

    taskset -c 0 python -m benchmarks uci-stop --model campaigns/small-001 --times 200
    """
    command = [
        sys.executable, "-m", "chess_snn", "uci", "--model", model, "--threads", str(threads),
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        delays_ms = sorted(_delays_ms(engine.stdin, engine.stdout, times))
        engine.stdin.write("quit\n")
    for share in (0.5, 0.9, 0.99, 1.0):
        rank = min(len(delays_ms) - 1, int(share * len(delays_ms)))
        report.add(f"{share:.0%} answered within", delays_ms[rank], "ms",
                   at_most=limit_ms if share == 1 else None)


command = benchmark("uci-stop", run)


def _delays_ms(commands: IO[str], answers: IO[str], times: int) -> list[float]:
    stream, board, delays_ms = random.Random(0), chess.Board(), []
    commands.write("uci\nisready\n")
    _read_until(answers, "readyok")
    for _ in range(times):
        if board.is_game_over():
            board.reset()
        board.push(stream.choice(list(board.legal_moves)))
        moves = " ".join(move.uci() for move in board.move_stack)
        commands.write(f"position startpos moves {moves}\ngo infinite\n")
        time.sleep(stream.uniform(0.01, 2.0))
        start = time.perf_counter()
        commands.write("stop\n")
        _read_until(answers, "bestmove")
        delays_ms.append(1000 * (time.perf_counter() - start))
    return delays_ms


def _read_until(answers: IO[str], start: str) -> None:
    for line in answers:
        if line.startswith(start):
            return
    raise EngineError(f"the engine died before it answered {start}")
