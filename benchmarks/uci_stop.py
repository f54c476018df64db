"""How soon ``chess-snn uci`` answers ``stop``, as a GUI sees it.

    taskset -c 0 python benchmarks/uci_stop.py --model campaigns/small-001 --times 200

Stops searches of positions of one random game at random moments, and prints quantiles in
milliseconds; exits with 1 where the slowest was later than the limit.
"""

import argparse
import random
import subprocess
import sys
import time
from typing import IO

import chess


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit-ms", type=float, default=100.0)
    arguments = parser.parse_args()
    command = [
        sys.executable, "-m", "chess_snn", "uci", "--model", arguments.model,
        "--threads", str(arguments.threads),
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        delays_ms = sorted(_delays_ms(engine.stdin, engine.stdout, arguments.times))
        engine.stdin.write("quit\n")
    for share in (0.5, 0.9, 0.99, 1.0):
        rank = min(len(delays_ms) - 1, int(share * len(delays_ms)))
        print(f"{share:>5.0%} of {len(delays_ms)} answered within {delays_ms[rank]:7.1f} ms")
    sys.exit(delays_ms[-1] > arguments.limit_ms)


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
    raise SystemExit(f"the engine died before it answered {start}")


if __name__ == "__main__":
    main()
