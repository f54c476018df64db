"""Games of ``chess-snn uci`` against another UCI engine, with clocks, under python-chess.

    python benchmarks/uci_games.py --model campaigns/cpu-001 --opponent stockfish --nodes 100

Plays with both colours from random openings of four plies, and counts results, illegal moves,
losses on time and crashes; exits with 1 where there was any of those three.
"""

import argparse
import collections
import random
import shlex
import sys
import time

import chess
import chess.engine

MOST_PLIES = 400


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--opponent", default="stockfish", help="command of the other engine")
    parser.add_argument("--nodes", type=int, default=100, help="of the other engine, a move")
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--clock-s", type=float, default=20.0)
    parser.add_argument("--increment-s", type=float, default=0.1)
    arguments = parser.parse_args()
    ours = [sys.executable, "-m", "chess_snn", "uci", "--model", arguments.model]
    counts: collections.Counter[str] = collections.Counter()
    with (
        chess.engine.SimpleEngine.popen_uci(ours, timeout=120) as engine,
        chess.engine.SimpleEngine.popen_uci(shlex.split(arguments.opponent)) as opponent,
    ):
        engine.timeout = opponent.timeout = 60 + arguments.clock_s
        engine.ping()  # kernels may have to be compiled, and no clock runs before readyok
        for number in range(arguments.games):
            color = number % 2 == 0
            ending = _play(engine, opponent, color, number, arguments)
            counts[ending] += 1
            print(f"game {number + 1}: {'white' if color else 'black'}, {ending}", flush=True)
    print(", ".join(f"{count} {ending}" for ending, count in counts.most_common()))
    sys.exit(any(counts[fault] for fault in ("illegal move", "lost on time", "engine died")))


def _play(
    engine: chess.engine.SimpleEngine, opponent: chess.engine.SimpleEngine, color: bool,
    number: int, arguments: argparse.Namespace,
) -> str:
    board, stream = chess.Board(), random.Random(number // 2)
    for _ in range(4):
        board.push(stream.choice(list(board.legal_moves)))
    clock_s = arguments.clock_s
    while not board.is_game_over(claim_draw=True) and board.ply() < MOST_PLIES:
        if board.turn != color:
            limit = chess.engine.Limit(nodes=arguments.nodes)
            board.push(opponent.play(board, limit, game=number).move)
            continue
        clock = {"white_clock": clock_s, "black_clock": clock_s,
                 "white_inc": arguments.increment_s, "black_inc": arguments.increment_s}
        start = time.perf_counter()
        try:
            result = engine.play(board, chess.engine.Limit(**clock), game=number)
        except chess.engine.EngineTerminatedError:
            return "engine died"
        except chess.engine.EngineError:
            return "illegal move"
        clock_s -= time.perf_counter() - start
        if clock_s < 0:
            return "lost on time"
        clock_s += arguments.increment_s
        board.push(result.move)
    outcome = board.outcome(claim_draw=True)
    if outcome is None or outcome.winner is None:
        return "drawn"
    return "won" if outcome.winner == color else "lost"


if __name__ == "__main__":
    main()
