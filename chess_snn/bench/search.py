"""Tree search: the trees alone, with a network behind them, and beside OpenSpiel's.

OpenSpiel is asked for chess through its Python search, the one its AlphaZero example trains with;
both sides use the same network at the same precision, on the same cores, in the same run.
"""

import importlib.util
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from chess_snn.bench.report import BenchReport
from chess_snn.games import get_game
from chess_snn.games.base import GameBatch
from chess_snn.games.chess import action_of_move, from_board
from chess_snn.games.sampling import random_starts
from chess_snn.nets import build_network, make_evaluator, net_config
from chess_snn.nets.evaluator import Evaluation, Evaluator
from chess_snn.search import SearchKind, SearchSettings, make_search, make_tree_search
from chess_snn.self_play import SelfPlaySettings, SelfPlayStatistics, play_games
from chess_snn.types import Int16Array, Int32Array, UInt64Array

_LEAST_SIMULATIONS_PER_S = 300_000
_LEAST_NETWORK_SHARE = 0.85
_GAMES = 256
_SIMULATIONS = 32
_OPENING_PLIES = 12
_NETWORK = "small"
_PEER_SECONDS = 10.0
_EXPLORATION = SearchSettings().exploration


def run(quick: bool = False) -> BenchReport:
    """Measure; about 3 minutes on two cores, or some seconds."""
    report = BenchReport("search")
    rounds = 2 if quick else 20
    for kind in ("gumbel", "puct"):
        per_s = _tree_only(kind, rounds)
        name = f"{kind}: trees and rules alone, one core"
        report.add(name, per_s, "simulations/s", at_least=_LEAST_SIMULATIONS_PER_S)
    seconds = 1.0 if quick else _PEER_SECONDS
    peer_alone = _open_spiel(_uniform, seconds)
    if peer_alone is not None:
        report.add("OpenSpiel: tree and rules alone", peer_alone, "simulations/s")
        report.add("ratio of trees and rules", per_s / peer_alone, "times")

    num_threads = os.cpu_count() or 1
    network = build_network(get_game("chess").spec, net_config(_NETWORK), seed=0)
    with make_evaluator(network, num_threads=num_threads) as evaluator:
        plies = 1 if quick else 4
        _play(evaluator, groups=2, plies=1)
        alternating = _play(evaluator, groups=2, plies=plies)
        single = _play(evaluator, groups=1, plies=plies)
        peer = _open_spiel(lambda state: _ask(evaluator, state), seconds)
    ours = alternating.positions * _SIMULATIONS / alternating.seconds
    report.add(f"{_NETWORK}: search", ours, "simulations/s")
    report.add(f"{_NETWORK}: search", alternating.positions / alternating.seconds, "positions/s")
    report.add(
        f"{_NETWORK}: time in the network", alternating.network_share, "share",
        at_least=_LEAST_NETWORK_SHARE,
    )
    report.add(
        f"{_NETWORK}: two groups of games beside one",
        single.seconds / alternating.seconds, "times",
    )
    if peer is not None:
        report.add(f"{_NETWORK}: OpenSpiel", peer, "simulations/s")
        report.add(f"{_NETWORK}: OpenSpiel", peer / _SIMULATIONS, "positions/s")
        report.add(f"{_NETWORK}: ratio", ours / peer, "times")
    else:
        report.notes.append("OpenSpiel is not installed (pip install open_spiel): no comparison.")
    report.notes.append(
        f"{_GAMES} games of chess, {_SIMULATIONS} simulations a position; the network in bf16 on "
        f"{num_threads} threads."
    )
    return report


class _FreeEvaluator:
    """Answers at once: every action alike, and a value from the position's bits."""

    network_seconds = 0.0

    def evaluate(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Evaluation:
        start = time.perf_counter()
        mixed = planes.sum(axis=1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        win = (mixed >> np.uint64(40)).astype(np.float32) / np.float32(2**24)
        wdl = np.stack([win, np.zeros_like(win), 1 - win], axis=1)
        logits = np.zeros(legal_actions.shape, np.float32)
        self.network_seconds += time.perf_counter() - start
        return Evaluation(logits, wdl)


def _tree_only(kind: SearchKind, rounds: int) -> float:
    """Simulations/s on one core, less the time of the evaluator."""
    game, evaluator = get_game("chess"), _FreeEvaluator()
    search = make_tree_search(
        game, evaluator, SearchSettings(kind=kind), simulations=_SIMULATIONS, num_games=_GAMES
    )
    batch = _openings()
    keys = np.arange(_GAMES, dtype=np.uint64)
    plies, warm = np.zeros(_GAMES, np.int32), np.ones(_GAMES, np.float32)
    search.run(batch, keys, plies, warm)
    start, free = time.perf_counter(), evaluator.network_seconds
    for ply in range(rounds):
        search.run(batch, keys, plies + np.int32(ply), warm)
    seconds = time.perf_counter() - start - (evaluator.network_seconds - free)
    return rounds * _GAMES * _SIMULATIONS / seconds


def _openings() -> GameBatch:
    game = get_game("chess")
    seeds = np.arange(_GAMES, dtype=np.uint64)
    starts = random_starts(game, seeds, np.full(_GAMES, _OPENING_PLIES, np.int32))
    batch = game.allocate(_GAMES)
    game.reset(batch, np.arange(_GAMES), starts)
    return batch


def _play(evaluator: Evaluator, groups: int, plies: int) -> SelfPlayStatistics:
    game, each = get_game("chess"), _GAMES // groups
    settings = SearchSettings()
    searches = [
        make_search(game, evaluator, settings, simulations=_SIMULATIONS, num_games=each)
        for _ in range(groups)
    ]
    self_play = SelfPlaySettings(
        concurrent_games=_GAMES, max_plies_first=plies, max_plies_last=plies,
        practice_share_first=0.0, restart_share_first=0.0,
    )
    return play_games(game, searches, self_play, num_games=_GAMES, seed=1)[1]


def _ask(evaluator: Evaluator, state: Any) -> tuple[list[float], float]:
    """Priors of an OpenSpiel state's legal actions, and its value for the side to move."""
    import chess  # here: only this comparison needs it

    board = chess.Board(str(state))
    moves = [state.action_to_string(a) for a in state.legal_actions()]
    actions = [action_of_move(board.parse_san(move), board.turn) for move in moves]
    evaluation = evaluator.evaluate(
        get_game("chess").planes(from_board(board)[None]),
        np.array([actions], np.int16), np.array([len(actions)], np.int32),
    )
    logits = evaluation.legal_logits[0].astype(np.float64)
    policy = np.exp(logits - logits.max())
    return list(policy / policy.sum()), float(evaluation.value_stm[0])


def _uniform(state: Any) -> tuple[list[float], float]:
    count = len(state.legal_actions())
    return [1 / count] * count, 0.0


def _open_spiel(
    ask: Callable[[Any], tuple[list[float], float]], seconds: float
) -> float | None:
    """Simulations/s of OpenSpiel's search of chess, one game; None where it is not installed."""
    if importlib.util.find_spec("pyspiel") is None:
        return None
    import pyspiel
    from open_spiel.python.algorithms import mcts

    class Ask(mcts.Evaluator):  # type: ignore[misc]
        """Both answers of one call: OpenSpiel asks for the prior and then for the value."""

        def prior(self, state: Any) -> list[tuple[int, float]]:
            policy, self._value = ask(state)
            return list(zip(state.legal_actions(), policy, strict=True))

        def evaluate(self, state: Any) -> list[float]:
            _, value = ask(state)
            own = state.current_player()
            return [value if player == own else -value for player in range(2)]

    game = pyspiel.load_game("chess")
    bot = mcts.MCTSBot(game, _EXPLORATION, _SIMULATIONS, Ask(), solve=False)
    state, num_positions = game.new_initial_state(), 0
    bot.mcts_search(state)
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        if state.is_terminal():
            state = game.new_initial_state()
        state.apply_action(bot.mcts_search(state).best_child().action)
        num_positions += 1
    return num_positions * _SIMULATIONS / (time.perf_counter() - start)
