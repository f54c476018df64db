"""Positions that a search asks its network about in games against itself, and their number.

They are fewer than simulations: a search asks nothing about positions that have ended, that can be
won at once, or that it has met before, and one more about each root.

Dimensions: N positions, P bitplanes.
"""

from dataclasses import dataclass

import numpy as np

from chess_snn.games.base import Game
from chess_snn.nets import Evaluation, Evaluator
from chess_snn.rng import generator
from chess_snn.search import SearchSettings, make_match_search
from chess_snn.self_play.player import play_games
from chess_snn.self_play.settings import SelfPlaySettings
from chess_snn.types import Int16Array, Int32Array, Progress, UInt64Array


@dataclass(frozen=True, slots=True, eq=False)
class AskedPositions:
    """Positions asked in some games, all moves of both sides together."""

    planes: UInt64Array
    """uint64[N, P]: a sample, each position asked about with the same probability."""
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


class _Sampling:
    """An evaluator that counts and samples what it is asked."""

    def __init__(self, game: Game, evaluator: Evaluator, num_positions: int, seed: int) -> None:
        self.evaluations = 0
        self.planes: UInt64Array = np.empty((0, game.spec.all_planes), np.uint64)
        self._evaluator, self._most = evaluator, num_positions
        self._random = generator(seed, "asked")
        # The sample has the positions with the smallest random numbers.
        self._drawn = np.empty(0)

    @property
    def network_seconds(self) -> float:
        """See :attr:`chess_snn.nets.evaluator.Evaluator.network_seconds`."""
        return self._evaluator.network_seconds

    @property
    def reduced_rows(self) -> int | None:
        """See :attr:`chess_snn.nets.evaluator.Evaluator.reduced_rows`."""
        return self._evaluator.reduced_rows

    def evaluate(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Evaluation:
        """See :meth:`chess_snn.nets.evaluator.Evaluator.evaluate`."""
        self.evaluations += len(planes)
        drawn = np.concatenate([self._drawn, self._random.random(len(planes))])
        kept = np.sort(np.argsort(drawn)[: self._most])
        self.planes = np.concatenate([self.planes, planes])[kept]
        self._drawn = drawn[kept]
        return self._evaluator.evaluate(planes, legal_actions, num_legal)


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
    asked = _Sampling(game, evaluator, num_positions, seed)
    search = make_match_search(
        game, asked, settings, simulations=simulations, num_games=num_games
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
    return AskedPositions(asked.planes, asked.evaluations, statistics.positions, num_games)
