"""Tree search: the trees alone, with a network behind them, and beside OpenSpiel's.

OpenSpiel plays chess with its Python search, which its AlphaZero example trains with. Both sides
use the same network at the same precision, on the same cores, in the same run.
"""

import importlib
import importlib.util
import time
from typing import Any

import numpy as np

from benchmarks.harness import Pace, rate
from benchmarks.report import Quick, Report, benchmark
from benchmarks.simulated_device import answer_by_bits
from chess_snn.cores import num_cores
from chess_snn.games import get_game
from chess_snn.games.base import GameBatch
from chess_snn.games.starts import random_starts
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


def run(report: Report, quick: Quick = False) -> None:
    """Tree search, alone and with a network, beside OpenSpiel's.

    Takes about 3 minutes on two cores.
    """
    rounds = 2 if quick else 20
    for kind in ("gumbel", "puct"):
        per_s = _tree_only(kind, rounds)
        name = f"{kind}: trees and rules alone, one core"
        report.add(name, per_s, "simulations/s", at_least=_LEAST_SIMULATIONS_PER_S)
    peer_pace = Pace(rounds=1, turn_s=1.0 if quick else _PEER_SECONDS)
    peer = _open_spiel()
    if peer is None:
        report.note("OpenSpiel is not installed (pip install open_spiel): no comparison.")
    else:
        alone = rate(peer.playing(peer.uniform, _SIMULATIONS), peer_pace)
        report.add("OpenSpiel: tree and rules alone", alone, "simulations/s")
        report.add("ratio of trees and rules", per_s / alone, "times")

    num_threads = num_cores()
    network = build_network(get_game("chess").spec, net_config(_NETWORK), seed=0)
    with make_evaluator(network, num_threads=num_threads) as evaluator:
        plies = 1 if quick else 4
        _play(evaluator, groups=2, plies=1)
        alternating = _play(evaluator, groups=2, plies=plies)
        single = _play(evaluator, groups=1, plies=plies)
        if peer is not None:
            theirs = rate(peer.playing(peer.ask(evaluator), _SIMULATIONS), peer_pace)
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
        report.add(f"{_NETWORK}: OpenSpiel", theirs, "simulations/s")
        report.add(f"{_NETWORK}: OpenSpiel", theirs / _SIMULATIONS, "positions/s")
        report.add(f"{_NETWORK}: ratio", ours / theirs, "times")
    report.note(
        f"{_GAMES} games of chess, {_SIMULATIONS} simulations a position; the network in bf16 on "
        f"{num_threads} threads."
    )


command = benchmark("search", run)


def _open_spiel() -> Any:
    """The module of the comparison; None where OpenSpiel is not installed."""
    if importlib.util.find_spec("pyspiel") is None:
        return None
    return importlib.import_module("benchmarks.open_spiel_peer")


class _FreeEvaluator:
    """Answers at once: every action alike, and a value from the position's bits."""

    network_seconds = 0.0
    reduced_rows: int | None = None

    def evaluate(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Evaluation:
        start = time.perf_counter()
        answer = answer_by_bits(planes, legal_actions)
        self.network_seconds += time.perf_counter() - start
        return answer


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
