"""The settings of self-play."""

from dataclasses import dataclass

import numpy as np

from chess_snn.config import check_range
from chess_snn.types import Float32Array, Int32Array


@dataclass(frozen=True, slots=True)
class SelfPlaySettings:
    """How games are played for training."""

    games_per_iteration: int = 400
    """Games of one iteration, over all shards."""
    games_per_shard: int = 100
    """Games of one self-play task; small shards balance unequal devices and lose little when a
    worker dies."""
    concurrent_games: int = 256
    """Games in play at once on one device; the batch of the network."""
    max_plies: int = 200
    """Games are cut after this many plies and counted as drawn, under their own name."""
    random_start_plies: int = 8
    """A game starts after a uniformly drawn number of random plies between 0 and this."""
    temperature_first: float = 1.0
    """Temperature of the first ply; 1 plays the policy as it is."""
    temperature_last: float = 0.5
    """Temperature from ply `temperature_plies` on; 0 plays the best action."""
    temperature_plies: int = 60
    """Plies over which the temperature falls, on a straight line."""

    def __post_init__(self) -> None:
        check_range("self_play.games_per_iteration", self.games_per_iteration, ge=1)
        check_range("self_play.games_per_shard", self.games_per_shard, ge=1)
        check_range("self_play.concurrent_games", self.concurrent_games, ge=1)
        check_range("self_play.max_plies", self.max_plies, ge=1, le=10_000)
        check_range("self_play.random_start_plies", self.random_start_plies, ge=0, le=200)
        check_range("self_play.temperature_first", self.temperature_first, ge=0, le=100)
        check_range("self_play.temperature_last", self.temperature_last, ge=0, le=100)
        check_range("self_play.temperature_plies", self.temperature_plies, ge=1)

    @property
    def num_shards(self) -> int:
        """Shards of an iteration; the last one may be short."""
        return -(-self.games_per_iteration // self.games_per_shard)

    def games_in_shard(self, shard: int) -> int:
        """Games of shard ``shard`` in [0, num_shards)."""
        return min(self.games_per_shard, self.games_per_iteration - shard * self.games_per_shard)

    def temperatures(self, plies: Int32Array) -> Float32Array:
        """Temperature float32[G] at each of ``plies`` int32[G]."""
        done = np.minimum(plies / self.temperature_plies, 1.0)
        schedule = self.temperature_first + (self.temperature_last - self.temperature_first) * done
        return schedule.astype(np.float32)
