"""Plays many games against itself at once on one device: one search call a ply for all of them.

Games are dealt to *groups* that run side by side: while one waits for the network, another is in
the rules or in its tree. A group's games live in *rows* of one batch. A game that ends frees its
row for the group's next game; when no game is left to start, rows are dropped, so that the network
never sees a dead row.

Dimensions: G rows in play of one group, n games.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from chess_snn.config import check_range
from chess_snn.data.records import GameRecords, concatenate
from chess_snn.games.base import Game, GameBatch
from chess_snn.games.sampling import random_starts
from chess_snn.rng import derive_seed, random_word
from chess_snn.search.base import Search
from chess_snn.self_play.recorder import GameRecorder
from chess_snn.self_play.settings import SelfPlaySettings
from chess_snn.self_play.statistics import SelfPlayStatistics, statistics_of
from chess_snn.types import Int32Array, Int64Array, UInt64Array

Progress = Callable[[int, int], None]
"""Called after every ply with (games finished, positions played) so far."""


def play_games(
    game: Game,
    searches: Sequence[Search],
    settings: SelfPlaySettings,
    *,
    num_games: int,
    seed: int,
    on_progress: Progress | None = None,
) -> tuple[GameRecords, SelfPlayStatistics]:
    """Play ``num_games`` whole games and return them with their statistics.

    Game k draws every random number from a stream of its own, named by ``seed`` and k: the games
    do not depend on ``settings.concurrent_games`` or the number of groups, beyond the rounding of
    the device.

    Args:
        game: to be played.
        searches: one for each group of games, of the same kind, network and settings.
        settings: how to play.
        num_games: games of all groups together.
        seed: of the games.
        on_progress: called by one thread at a time.

    Raises:
        ConfigError: ``num_games`` is below 1, or random starts end within ``random_start_plies``.
    """
    check_range("num_games", num_games, ge=1)
    num_groups = min(len(searches), num_games)
    firsts = [group * num_games // num_groups for group in range(num_groups + 1)]
    rows_each = -(-settings.concurrent_games // num_groups)
    groups = [
        _Group(game, search, settings, range(first, end), rows_each, seed)
        for search, first, end in zip(searches, firsts[:-1], firsts[1:], strict=False)
    ]
    network_start, start = _network_seconds(searches), time.perf_counter()
    _play_to_the_end(groups, on_progress)
    records = concatenate([group.records() for group in groups])
    return records, statistics_of(
        game.spec, records,
        entropy_sum=sum(group.entropy_sum for group in groups),
        uniform_entropy_sum=sum(group.uniform_entropy_sum for group in groups),
        seconds=time.perf_counter() - start,
        network_seconds=_network_seconds(searches) - network_start,
    )


def _network_seconds(searches: Sequence[Search]) -> float:
    """Of all evaluators behind the searches, each counted once."""
    evaluators = {id(search.evaluator): search.evaluator for search in searches}
    return sum(evaluator.network_seconds for evaluator in evaluators.values())


def _play_to_the_end(groups: Sequence["_Group"], on_progress: Progress | None) -> None:
    reporting, failed = threading.Lock(), threading.Event()

    def play(group: _Group) -> None:
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


class _Group:
    """The games ``numbers`` of one call of :func:`play_games`."""

    def __init__(
        self, game: Game, search: Search, settings: SelfPlaySettings, numbers: range,
        num_rows: int, seed: int,
    ) -> None:
        self._game, self._search, self._settings = game, search, settings
        num_games = self._num_games = len(numbers)
        self._keys = _streams(seed, "actions", numbers)
        self._chance_keys = _streams(seed, "chance", numbers)
        start_keys = _streams(seed, "starts", numbers)
        start_plies = start_keys % np.uint64(settings.random_start_plies + 1)
        self._starts = random_starts(game, start_keys, start_plies.astype(np.int32))
        self._recorder = GameRecorder(num_games, game.spec.record_words)
        self._outcomes = np.zeros(num_games, np.int8)
        self._terminations = np.zeros(num_games, np.uint8)
        self.num_finished = 0
        self.num_positions = 0
        self.entropy_sum = 0.0
        self.uniform_entropy_sum = 0.0

        rows = min(num_games, num_rows)
        self._next_game = rows
        self._row_game: Int64Array = np.arange(rows)
        self._row_ply: Int32Array = np.zeros(rows, np.int32)
        self._batch: GameBatch = game.allocate(rows)
        game.reset(self._batch, self._row_game, self._starts[:rows])

    @property
    def rows(self) -> int:
        """G, the games in play."""
        return len(self._row_game)

    def play_ply(self) -> None:
        """One ply in every game in play."""
        batch, game = self._batch, self._game
        result = self._search.run(
            batch,
            self._keys[self._row_game],
            self._row_ply,
            self._settings.temperatures(self._row_ply),
        )
        self._recorder.add_ply(self._row_game, batch, result)
        self.num_positions += self.rows
        self.entropy_sum += float(result.prior_entropies.sum())
        self.uniform_entropy_sum += float(np.log(batch.num_legal).sum())

        white_moves = game.side_to_move(batch.state) == 0
        chance = None
        if game.spec.is_stochastic:
            chance = _chance_words(self._chance_keys[self._row_game], self._row_ply)
        game.step(batch, result.actions, chance)
        self._row_ply += 1
        ended = batch.termination > 0
        over = np.flatnonzero(ended | (self._row_ply >= self._settings.max_plies))
        if over.size:
            self._finish(over, white_moves)

    def _finish(self, rows: Int64Array, white_moved: np.ndarray) -> None:
        games = self._row_game[rows]
        reward = np.sign(self._batch.reward[rows])
        self._outcomes[games] = np.where(white_moved[rows], reward, -reward)
        self._terminations[games] = self._batch.termination[rows]
        self.num_finished += rows.size

        num_new = min(rows.size, self._num_games - self._next_game)
        refill, drop = rows[:num_new], rows[num_new:]
        if num_new:
            new_games = np.arange(self._next_game, self._next_game + num_new)
            self._game.reset(self._batch, refill, self._starts[new_games])
            self._row_game[refill], self._row_ply[refill] = new_games, 0
            self._next_game += num_new
        if drop.size:
            keep = np.setdiff1d(np.arange(self.rows), drop)
            self._batch = self._batch.take(keep)
            self._row_game, self._row_ply = self._row_game[keep], self._row_ply[keep]

    def records(self) -> GameRecords:
        """The finished games."""
        return self._recorder.finish(self._outcomes, self._terminations)


def _streams(seed: int, purpose: str, numbers: range) -> UInt64Array:
    """uint64[n]: for each game the key of its own random stream for ``purpose``."""
    key = np.uint64(derive_seed(seed, purpose))
    return np.array([random_word(key, np.uint64(k)) for k in numbers], np.uint64)


def _chance_words(keys: UInt64Array, plies: Int32Array) -> UInt64Array:
    """uint64[G]: the word of each stream at its ply."""
    words = [random_word(key, np.uint64(ply)) for key, ply in zip(keys, plies, strict=True)]
    return np.array(words, np.uint64)
