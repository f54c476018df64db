"""Self-play in batches, beside one game with python-chess and a batch of one.

Both sides use the same network at the same precision, on the same cores, in the same run. The one
game asks a network whose layers are calls of oneDNN, as PyTorch's are. Where our self-play has one
kernel for all of them, the one game through that kernel is measured too.
"""

from contextlib import ExitStack
from typing import Final

import chess
import numpy as np

from benchmarks.harness import Pace, Quick, Report, Work, benchmark, rate
from chess_snn.cores import num_cores
from chess_snn.games import get_game
from chess_snn.games.chess import action_of_move, from_board
from chess_snn.nets import CpuEvaluator, Evaluator, build_network, freeze, net_config
from chess_snn.nets.gpu.conv_neuron import LayerKind
from chess_snn.search import PolicySearch
from chess_snn.self_play import SelfPlaySettings, SelfPlayStatistics, play_games

_BARS = {
    ("tiny", "lif"): 40.0, ("small", "lif"): 10.0, ("tiny", "ilif"): 80.0, ("small", "ilif"): 30.0,
}
"""Least ratio of positions/s to the loop with a batch of one, by size and neurons."""

_MORE: Final[dict[str, dict[str, int]]] = {"lif": {}, "ilif": {"ticks": 1}}
_LEAST_NETWORK_SHARE = 0.8
_MAX_PLIES = 120
_PRECISION: Final = "int8"
"""Precision of both sides: the fastest on a CPU."""
_PLAIN: Final[LayerKind] = "separate"
_GAMES = {"tiny": 512, "small": 256}
_GROUPS = 2
_PEER_SECONDS = 10.0


def run(report: Report, quick: Quick = False) -> None:
    """Self-play of `tiny` and `small` in int8, beside one game at a time with a batch of one.

    Both with leaky neurons (lif) and with integer ones (ilif). Takes 2 minutes on two cores.
    """
    peer_pace = Pace(rounds=1, turn_s=1.0 if quick else _PEER_SECONDS)
    num_threads = num_cores()
    for (size, activation), bar in _BARS.items():
        name = f"{size}, {activation}"
        config = net_config(size, activation=activation, **_MORE[activation])
        network = build_network(get_game("chess").spec, config, seed=0)
        with ExitStack() as stack:
            evaluator, plain = (
                stack.enter_context(CpuEvaluator(
                    freeze(network, _PRECISION, layers=layers), num_threads
                ))
                for layers in (None, _PLAIN)
            )
            peer = rate(_one_game(plain), peer_pace)
            if evaluator.network.layers != _PLAIN:
                alone = rate(_one_game(evaluator), peer_pace)
                report.add(f"{name}: one game, batch of one, our kernel", alone, "positions/s")
            ours = _play(evaluator, _GAMES[size], 4 if quick else _MAX_PLIES)
        per_s = ours.positions / ours.seconds
        report.add(f"{name}: one game, batch of one", peer, "positions/s")
        report.add(f"{name}: self-play", per_s, "positions/s")
        report.add(f"{name}: self-play", ours.games / ours.seconds, "games/s")
        report.add(f"{name}: ratio", per_s / peer, "times", at_least=bar)
        least = _LEAST_NETWORK_SHARE if size == "small" else None
        report.add(f"{name}: time in the network", ours.network_share, "share", at_least=least)
    report.note(
        f"Both sides: {_PRECISION}, {num_threads} threads, policy only, games truncated at "
        f"{_MAX_PLIES} plies."
    )


command = benchmark("selfplay", run)


def _play(evaluator: Evaluator, num_games: int, max_plies: int) -> SelfPlayStatistics:
    game = get_game("chess")
    searches = [PolicySearch(game, evaluator) for _ in range(_GROUPS)]
    play_games(game, searches, all_at_once(2, num_games), num_games=num_games, seed=0)
    settings = all_at_once(max_plies, num_games)
    return play_games(game, searches, settings, num_games=num_games, seed=1)[1]


def all_at_once(max_plies: int, num_games: int) -> SelfPlaySettings:
    """Settings that play all games at once, from ordinary starts."""
    return SelfPlaySettings(
        concurrent_games=num_games, max_plies_first=max_plies, practice_share_first=0.0
    )


def _one_game(evaluator: Evaluator) -> Work:
    """One move at a time: python-chess's rules, and the network asked about one position."""
    rng = np.random.default_rng(0)
    board = chess.Board()

    def move() -> None:
        if board.is_game_over(claim_draw=False) or board.ply() >= _MAX_PLIES:
            board.reset()
        board.push(_peer_move(evaluator, board, rng))

    return Work(move)


def _peer_move(
    evaluator: Evaluator, board: chess.Board, rng: np.random.Generator
) -> chess.Move:
    moves = list(board.legal_moves)
    actions = np.array([[action_of_move(move, board.turn) for move in moves]], np.int16)
    planes = get_game("chess").planes(from_board(board)[None])
    evaluation = evaluator.evaluate(planes, actions, np.array([len(moves)], np.int32))
    logits = evaluation.legal_logits[0].astype(np.float64)
    policy = np.exp(logits - logits.max())
    return moves[int(rng.choice(len(moves), p=policy / policy.sum()))]
