"""Plays many games against itself at once on one device.

The call that a worker makes to get games. Read ``play_games``: it plans games, deals them to groups
and counts what they were. File 8 of 16 of the spine in docs/architecture.md.

A plan names for each game its start (the game's beginning, a position that one side should win, or
one of an earlier game), its random streams and its most plies.

Games are dealt to *groups* that run side by side: while one waits for the network, another is in
the rules or in its tree.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from chess_snn.data.records import GameRecords, concatenate
from chess_snn.games.base import Game, GameBatch
from chess_snn.games.starts import Chooser
from chess_snn.search.base import PolicySearch, Search
from chess_snn.self_play.group import GameGroup
from chess_snn.self_play.settings import SelfPlaySettings
from chess_snn.self_play.starts import plan_games
from chess_snn.self_play.statistics import SelfPlayStatistics, statistics_of
from chess_snn.types import Int16Array, Int32Array, Progress, UInt64Array


def play_games(
    game: Game,
    searches: Sequence[Search],
    settings: SelfPlaySettings,
    *,
    num_games: int,
    seed: int,
    progress: float = 0.0,
    restarts: UInt64Array | None = None,
    on_progress: Progress | None = None,
    first_game: int = 0,
) -> tuple[GameRecords, SelfPlayStatistics]:
    """Play ``num_games`` whole games and return them with their statistics.

    Game k draws every random number from streams of its own, named by ``seed`` and k: the games
    do not depend on ``settings.concurrent_games``, the number of groups or the other games of the
    call, beyond the rounding of the device.

    Args:
        game: to be played.
        searches: one for each group of games, of the same kind, network and settings.
        settings: how to play.
        num_games: games of all groups together.
        seed: of the games.
        progress: share of the campaign done, in [0, 1]; settles starts, the most plies of a game,
            and values of truncated games.
        restarts: uint64[m, R], record rows of earlier games to restart from. Without any, the
            share of restarted games is played from ordinary starts.
        on_progress: called by one thread at a time.
        first_game: number k of the first of them, >= 0.

    Raises:
        ConfigError: a number is out of range, random starts end within ``random_start_plies``, or
            the restarts have ended.
    """
    plan = plan_games(
        game, settings, num_games=num_games, seed=seed, progress=progress, restarts=restarts,
        policy=_policy_of(searches[0]), first_game=first_game,
    )
    num_groups = min(len(searches), num_games)
    firsts = [group * num_games // num_groups for group in range(num_groups + 1)]
    rows_each = -(-settings.concurrent_games // num_groups)
    groups = [
        GameGroup(game, search, settings, plan.part(slice(first, end)), rows_each)
        for search, first, end in zip(searches, firsts[:-1], firsts[1:], strict=False)
    ]
    network_start, start = _network_seconds(searches), time.perf_counter()
    _play_to_the_end(groups, on_progress)
    records = concatenate([group.records() for group in groups])
    return records, statistics_of(
        game.spec, records,
        points=np.concatenate([group.points for group in groups]),
        milestones=np.concatenate([group.milestones for group in groups]),
        entropy_sum=sum(group.entropy_sum for group in groups),
        uniform_entropy_sum=sum(group.uniform_entropy_sum for group in groups),
        seconds=time.perf_counter() - start,
        network_seconds=_network_seconds(searches) - network_start,
    )


def _policy_of(search: Search) -> Chooser:
    """The best action of the policy of the network behind ``search``, without search."""

    def choose(
        game: Game, batch: GameBatch, keys: UInt64Array, plies: Int32Array
    ) -> Int16Array:
        policy = PolicySearch(game, search.evaluator)
        return policy.run(batch, keys, plies, np.zeros(len(batch), np.float32)).actions

    return choose


def _network_seconds(searches: Sequence[Search]) -> float:
    """Seconds of all evaluators behind the searches, each counted once."""
    evaluators = {id(search.evaluator): search.evaluator for search in searches}
    return sum(evaluator.network_seconds for evaluator in evaluators.values())


def _play_to_the_end(groups: Sequence[GameGroup], on_progress: Progress | None) -> None:
    reporting, failed = threading.Lock(), threading.Event()

    def play(group: GameGroup) -> None:
        try:
            while group.rows and not failed.is_set():
                group.play_ply()
                if on_progress is not None:
                    with reporting:
                        on_progress(
                            sum(group.num_finished for group in groups),
                            sum(group.num_positions for group in groups),
                        )
        except BaseException:
            failed.set()  # the others need not go on
            raise

    with ThreadPoolExecutor(len(groups), thread_name_prefix="games") as threads:
        # list: raise what a group raised.
        list(threads.map(play, groups))
