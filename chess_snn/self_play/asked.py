"""Positions that a search asks its network about in games against itself, and their number.

They are fewer than simulations: a search asks nothing about positions that have ended, that can be
won at once, or that it has met before, and one more about each root.

Dimensions: N positions, P bitplanes, C of them chosen.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chess_snn.games.base import Game, GameBatch
from chess_snn.nets import Evaluation, Evaluator
from chess_snn.rng import generator
from chess_snn.search import SearchResult, SearchSettings, TreeSearch, make_search
from chess_snn.self_play.player import play_games
from chess_snn.self_play.settings import SelfPlaySettings
from chess_snn.types import (
    Float32Array,
    Int16Array,
    Int32Array,
    Int64Array,
    Progress,
    UInt64Array,
)


@dataclass(frozen=True, slots=True, eq=False)
class AskedPositions:
    """Positions asked in some games, all moves of both sides together."""

    planes: UInt64Array
    """uint64[N, P]: a sample, each position asked about with the same probability."""
    before: UInt64Array
    """uint64[N, P]: what each follows in its line, from the game's start through the tree: the
    position two plies before; in a game with chance events, one decision before. Zeros where the
    game has none."""
    previous: UInt64Array
    """uint64[N, P]: what was asked before it in the same game; zeros of the first."""
    evaluations: int
    """Positions asked about, the sample among them."""
    moves: int
    games: int

    @property
    def evaluations_per_move(self) -> float:
        """Mean over all moves."""
        return self.evaluations / self.moves

    @property
    def moves_per_game(self) -> float:
        """Mean over all games, in plies."""
        return self.moves / self.games

    @classmethod
    def joined(cls, parts: Sequence["AskedPositions"]) -> "AskedPositions":
        """All games of ``parts``, of which there is one at least."""
        planes, before, previous = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("planes", "before", "previous")
        )
        return cls(
            planes, before, previous, sum(part.evaluations for part in parts),
            sum(part.moves for part in parts), sum(part.games for part in parts),
        )


class _Watched:
    """A search that is its own evaluator: it counts and samples what it is asked."""

    def __init__(
        self, game: Game, evaluator: Evaluator, settings: SearchSettings, *, simulations: int,
        num_games: int, num_positions: int, seed: int,
    ) -> None:
        self.evaluations = 0
        # Positions, what they follow, and what was asked before.
        self.sample: UInt64Array = np.empty((3, 0, game.spec.all_planes), np.uint64)
        self._game, self._asked, self._most = game, evaluator, num_positions
        self._random = generator(seed, "asked")
        # The sample has the positions with the smallest random numbers.
        self._drawn = np.empty(0)
        self._search = make_search(
            game, self, settings, simulations=simulations, num_games=num_games, in_play=True,
            keeps_trees=True,
        )
        self._keys: list[int] = []
        self._roots: dict[int, deque[UInt64Array]] = defaultdict(lambda: deque(maxlen=3))
        self._last: dict[int, UInt64Array] = {}

    @property
    def evaluator(self) -> Evaluator:
        """See :attr:`chess_snn.search.base.Search.evaluator`."""
        return self

    @property
    def network_seconds(self) -> float:
        """See :attr:`chess_snn.nets.evaluator.Evaluator.network_seconds`."""
        return self._asked.network_seconds

    def run(
        self, batch: GameBatch, keys: UInt64Array, plies: Int32Array, temperatures: Float32Array
    ) -> SearchResult:
        """See :meth:`chess_snn.search.base.Search.run`."""
        self._keys = keys.tolist()
        for key, state in zip(self._keys, batch.state, strict=True):
            self._roots[key].append(state.copy())
        return self._search.run(batch, keys, plies, temperatures)

    def evaluate(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Evaluation:
        """See :meth:`chess_snn.nets.evaluator.Evaluator.evaluate`."""
        self.evaluations += len(planes)
        drawn = np.concatenate([self._drawn, self._random.random(len(planes))])
        kept = np.sort(np.argsort(drawn)[: self._most])
        is_old = kept < len(self._drawn)
        found = self._with_lines(planes, kept[~is_old] - len(self._drawn))
        self.sample = np.concatenate([self.sample[:, kept[is_old]], found], axis=1)
        self._drawn = drawn[kept]
        return self._asked.evaluate(planes, legal_actions, num_legal)

    def _with_lines(self, planes: UInt64Array, chosen: Int64Array) -> UInt64Array:
        """uint64[3, C, P]: rows of the sample, of those ``chosen`` among what is asked now."""
        if isinstance(self._search, TreeSearch):
            rows, depths, states = self._search.asked_lines()
        else:
            rows, depths = np.arange(len(planes), dtype=np.int32), np.zeros(len(planes), np.int32)
            states = np.zeros((len(planes), self._game.spec.state_words), np.uint64)
        previous = np.zeros_like(planes)
        for k, row in enumerate(rows.tolist()):
            key = self._keys[row]
            previous[k] = self._last.get(key, 0)
            self._last[key] = planes[k]
        has_before = np.ones(len(planes), np.bool_)
        for k in chosen[depths[chosen] < 2].tolist():
            # The same player moves two plies before; alone, at every root.
            steps = 2 - int(depths[k])
            back = steps if self._game.spec.num_players == 2 else steps // 2
            roots = self._roots[self._keys[rows[k]]]
            has_before[k] = back < len(roots)
            states[k] = roots[-1 - back] if has_before[k] else roots[-1]
        before = self._game.planes(states[chosen]) * has_before[chosen, None]
        return np.stack([planes[chosen], before, previous[chosen]])


def asked_positions(
    game: Game, evaluator: Evaluator, settings: SearchSettings, *, simulations: int,
    num_games: int, num_positions: int, max_plies: int, seed: int,
    on_progress: Progress | None = None,
) -> AskedPositions:
    """Play games without exploration, each from up to 8 random plies, and sample what is asked.

    Args:
        game: that is played.
        evaluator: the network.
        settings: of its search.
        simulations: of a move; 0 plays the policy without search.
        num_games: of the network against itself, or alone.
        num_positions: of the sample; fewer if fewer are asked about.
        max_plies: a game is truncated after so many.
        seed: of starts, chance events and the sample.
        on_progress: as in :func:`chess_snn.self_play.play_games`.

    Raises:
        ConfigError: a number is out of range.
    """
    search = _Watched(
        game, evaluator, settings, simulations=simulations, num_games=num_games,
        num_positions=num_positions, seed=seed,
    )
    playing = SelfPlaySettings(
        concurrent_games=num_games, max_plies_first=max_plies, max_plies_last=max_plies,
        practice_share_first=0.0, practice_share_last=0.0,
        restart_share_first=0.0, restart_share_last=0.0,
        temperature_first=0.0, temperature_last=0.0,
    )
    _, statistics = play_games(
        game, [search], playing, num_games=num_games, seed=seed, on_progress=on_progress
    )
    planes, before, previous = search.sample
    return AskedPositions(
        planes, before, previous, search.evaluations, statistics.positions, num_games
    )
