"""Tree search: the trees alone, with a network behind them, and beside OpenSpiel's.

OpenSpiel plays chess with its Python search, which its AlphaZero example trains with. Both sides
use the same network at the same precision, on the same cores, in the same run.
"""

import importlib
import importlib.util
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import chess
import numpy as np

from benchmarks.harness import Pace, Quick, Report, Work, benchmark, rate
from benchmarks.self_play import all_at_once
from chess_snn.cores import num_cores
from chess_snn.games import get_game
from chess_snn.games.base import GameBatch
from chess_snn.games.chess import action_of_move, from_board
from chess_snn.games.starts import random_starts
from chess_snn.nets import build_network, make_evaluator, net_config
from chess_snn.nets.evaluator import Evaluation, Evaluator
from chess_snn.search import SearchKind, SearchSettings, make_search
from chess_snn.self_play import SelfPlayStatistics, play_games
from chess_snn.types import Int16Array, Int32Array, UInt64Array

_LEAST_SIMULATIONS_PER_S: Final = 300_000
_LEAST_NETWORK_SHARE: Final = 0.85
_KINDS: Final[tuple[SearchKind, ...]] = ("gumbel", "puct")
_GAMES: Final = 256
_GROUPS: Final = 2
_SIMULATIONS: Final = 32
_OPENING_PLIES: Final = 12
_NETWORK: Final = "small"
_PEER_S: Final = 10.0

Answer: TypeAlias = tuple[list[float], float]
"""Priors of a state's legal actions, in OpenSpiel's order, and its value for the side to move."""


def run(report: Report, quick: Quick = False) -> None:
    """Tree search, alone and with a network, beside OpenSpiel's.

    Takes about 2 minutes on two cores.
    """
    for kind in _KINDS:
        per_s = _trees_per_s(kind, rounds=2 if quick else 20)
        report.add(f"{kind}: trees and rules alone, one core", per_s, "simulations/s",
                   at_least=_LEAST_SIMULATIONS_PER_S)
    num_threads = num_cores()
    network = build_network(get_game("chess").spec, net_config(_NETWORK), seed=0)
    with make_evaluator(network, num_threads=num_threads) as evaluator:
        _play(evaluator, plies=1)
        played = _play(evaluator, plies=1 if quick else 4)
        per_s = played.positions / played.seconds
        report.add(f"{_NETWORK}: search", per_s * _SIMULATIONS, "simulations/s")
        report.add(f"{_NETWORK}: search", per_s, "positions/s")
        report.add(f"{_NETWORK}: time in the network", played.network_share, "share",
                   at_least=_LEAST_NETWORK_SHARE)
        if importlib.util.find_spec("pyspiel") is None:
            report.note("OpenSpiel is NOT installed (pip install open_spiel): no comparison.")
        else:
            pace = Pace(rounds=1, turn_s=1.0 if quick else _PEER_S)
            theirs = rate(_open_spiel(evaluator), pace) / _SIMULATIONS
            report.add(f"{_NETWORK}: OpenSpiel", theirs, "positions/s")
            report.add(f"{_NETWORK}: ratio", per_s / theirs, "times")
    report.note(
        f"{_GAMES} games of chess, {_SIMULATIONS} simulations a position; the network in bf16 on "
        f"{num_threads} threads."
    )


command = benchmark("search", run)


class FreeEvaluator:
    """Answers at once: every action alike, and a value from the position's bits."""

    network_seconds = 0.0

    def evaluate(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Evaluation:
        """See :meth:`chess_snn.nets.evaluator.Evaluator.evaluate`."""
        del num_legal
        start = time.perf_counter()
        mixed = planes.sum(axis=1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        win = (mixed >> np.uint64(40)).astype(np.float32) / np.float32(2**24)
        wdl = np.stack([win, np.zeros_like(win), 1 - win], axis=1)
        answer = Evaluation(np.zeros(legal_actions.shape, np.float32), wdl[:, 0] - wdl[:, 2], wdl)
        self.network_seconds += time.perf_counter() - start
        return answer


def _trees_per_s(kind: SearchKind, rounds: int) -> float:
    """Simulations/s on one core, less the time of the evaluator."""
    game, evaluator = get_game("chess"), FreeEvaluator()
    search = make_search(
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


def _play(evaluator: Evaluator, plies: int) -> SelfPlayStatistics:
    game = get_game("chess")
    searches = [
        make_search(game, evaluator, SearchSettings(), simulations=_SIMULATIONS,
                    num_games=_GAMES // _GROUPS)
        for _ in range(_GROUPS)
    ]
    return play_games(game, searches, all_at_once(plies, _GAMES), num_games=_GAMES, seed=1)[1]


def _open_spiel(evaluator: Evaluator) -> Work:
    """Searching one position of a game and playing the best move, with OpenSpiel's own search."""
    pyspiel: Any = importlib.import_module("pyspiel")
    mcts: Any = importlib.import_module("open_spiel.python.algorithms.mcts")
    game, answers = pyspiel.load_game("chess"), _CachedAnswers(lambda state: _ask(evaluator, state))
    bot = mcts.MCTSBot(game, SearchSettings().exploration, _SIMULATIONS, answers, solve=False)
    state = game.new_initial_state()

    def move() -> None:
        nonlocal state
        if state.is_terminal():
            state = game.new_initial_state()
        state.apply_action(bot.mcts_search(state).best_child().action)

    return Work(move, items=_SIMULATIONS)


def _ask(evaluator: Evaluator, state: Any) -> Answer:
    """Ask ``evaluator`` about one state of OpenSpiel."""
    board = chess.Board(str(state))
    sans = [state.action_to_string(action) for action in state.legal_actions()]
    actions = [action_of_move(board.parse_san(san), board.turn) for san in sans]
    evaluation = evaluator.evaluate(
        get_game("chess").planes(from_board(board)[None]),
        np.array([actions], np.int16), np.array([len(actions)], np.int32),
    )
    logits = evaluation.legal_logits[0].astype(np.float64)
    policy = np.exp(logits - logits.max())
    return list(policy / policy.sum()), float(evaluation.value_stm[0])


class _CachedAnswers:
    """An evaluator of OpenSpiel with one answer for each state, as its AlphaZero example has.

    OpenSpiel asks for the value first and for the priors at a later visit, and caches neither.
    """

    def __init__(self, answer: Callable[[Any], Answer]) -> None:
        self._answer = answer
        self._answers: dict[str, Answer] = {}

    def evaluate(self, state: Any) -> list[float]:
        """The values of both players."""
        _, value = self._once(state)
        own = state.current_player()
        return [value if player == own else -value for player in range(2)]

    def prior(self, state: Any) -> list[tuple[int, float]]:
        """Legal actions and their priors."""
        policy, _ = self._once(state)
        return list(zip(state.legal_actions(), policy, strict=True))

    def _once(self, state: Any) -> Answer:
        position = str(state)
        if position not in self._answers:
            self._answers[position] = self._answer(state)
        return self._answers[position]
