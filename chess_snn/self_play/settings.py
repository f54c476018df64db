"""The settings of self-play, and what they come to at one moment of the campaign."""

from typing import Final

import numpy as np
from pydantic import Field

from chess_snn.errors import ConfigError
from chess_snn.settings import settings_class
from chess_snn.types import Float32Array, Int32Array

SHARDS_A_WORKER: Final = 3
"""Workers that are slower, or begin later, than the others take fewer of them."""


@settings_class("self_play")
class SelfPlaySettings:
    """How games are played for training. A value named `_first` changes linearly to `_last`."""

    games_per_iteration: int = Field(default=400, ge=1)
    """Games of one iteration, over all shards."""
    games_per_shard: int = Field(default=100, ge=1)
    """Largest number of games of one self-play task (shard). An iteration is divided into several
    shards per worker if there are enough games."""
    concurrent_games: int = Field(default=256, ge=1)
    """Games in play at once on one worker; the batch size of the network."""
    max_plies_first: int = Field(default=150, ge=1, le=100_000)
    """Longest game at the start of the campaign, in plies; longer games are truncated, and
    `truncated_value_limit` decides what they count as in training."""
    max_plies_last: int = Field(default=200, ge=1, le=100_000)
    """The same at its end."""
    material_share_first: float = Field(default=1.0, ge=0, le=1)
    """Weight of the material balance in the value of a truncated game, at the start of the
    campaign; the rest is the value of the last search."""
    material_share_last: float = Field(default=0.2, ge=0, le=1)
    """The same at its end."""
    truncated_value_limit: float = Field(default=0.8, ge=0, le=1)
    """Largest absolute value of a truncated game in training; with 0 truncated games are draws."""
    random_start_plies: int = Field(default=8, ge=0, le=200)
    """A game starts after a uniformly drawn number of random plies between 0 and this."""
    practice_share_first: float = Field(default=0.2, ge=0, le=1)
    """Share of games that start from simple won positions (queens, rooks or a pawn against a king),
    at the start of the campaign."""
    practice_share_last: float = Field(default=0.15, ge=0, le=1)
    """The same at its end."""
    restart_share_first: float = Field(default=0.2, ge=0, le=1)
    """Share of games that start in the middle of earlier games, where no side was sure to win, at
    the start of the campaign."""
    restart_share_last: float = Field(default=0.2, ge=0, le=1)
    """The same at its end."""
    mismatch_share_first: float = Field(default=0.0, ge=0, le=1)
    """Share of games that start after one side has played for material against random moves, at the
    start of the campaign. It does so for 1 to 80 plies, and the network learns to win against weak
    players."""
    mismatch_share_last: float = Field(default=0.0, ge=0, le=1)
    """The same at its end."""
    mismatch_policy_share: float = Field(default=0.0, ge=0, le=1)
    """Share of those games in which the strong side is the network's policy without search
    instead."""
    teacher: str = ""
    """Engine whose moves and scores label games played without search: `stockfish@1000`."""
    temperature_first: float = Field(default=1.0, ge=0, le=100)
    """Temperature of a game's first ply; 1 draws from the policy unchanged."""
    temperature_last: float = Field(default=0.2, ge=0, le=100)
    """Temperature from ply `temperature_plies` on; 0 plays the best action."""
    temperature_plies: int = Field(default=30, ge=1)
    """Plies over which the temperature falls linearly."""

    def __post_init__(self) -> None:
        for when in ("first", "last"):
            shares = {
                f"self_play.{kind}_share_{when}": self._at(when, f"{kind}_share")
                for kind in ("practice", "restart", "mismatch")
            }
            if sum(shares.values()) > 1:
                listed = ", ".join(f"{name} = {share:g}" for name, share in shares.items())
                raise ConfigError(f"{listed} add to more than 1; lower one of them")

    @property
    def least_shards(self) -> int:
        """Shards of an iteration if each has as many games as it may have."""
        return -(-self.games_per_iteration // self.games_per_shard)

    def num_shards(self, num_workers: int) -> int:
        """Shards of an iteration that ``num_workers`` play.

        Every worker gets as many as the others, as long as there are games: ``SHARDS_A_WORKER``
        where a shard then still has half of ``concurrent_games``, since smaller batches slow the
        network down. One worker alone needs no more than ``least_shards``.
        """
        most = max(1, 2 * self.games_per_iteration // self.concurrent_games)
        each = max(1, min(SHARDS_A_WORKER, most // num_workers)) if num_workers > 1 else 1
        each = max(each, -(-self.least_shards // num_workers))
        return min(each * num_workers, self.games_per_iteration)

    def temperatures(self, plies: Int32Array) -> Float32Array:
        """Temperature float32[G] at each of ``plies`` int32[G]."""
        done = np.minimum(plies / self.temperature_plies, 1.0)
        schedule = self.temperature_first + (self.temperature_last - self.temperature_first) * done
        return schedule.astype(np.float32)

    def max_plies(self, progress: float) -> int:
        """Most plies of a game when ``progress`` in [0, 1] of the campaign is done."""
        return round(self._between("max_plies", progress))

    def material_share(self, progress: float) -> float:
        """Weight of material in the value of a truncated game."""
        return self._between("material_share", progress)

    def practice_share(self, progress: float) -> float:
        """Share of games from simple won positions."""
        return self._between("practice_share", progress)

    def restart_share(self, progress: float) -> float:
        """Share of games from the middle of earlier games."""
        return self._between("restart_share", progress)

    def mismatch_share(self, progress: float) -> float:
        """Share of games from positions against random moves."""
        return self._between("mismatch_share", progress)

    def _at(self, when: str, name: str) -> float:
        setting: float = getattr(self, f"{name}_{when}")
        return setting

    def _between(self, name: str, progress: float) -> float:
        first, last = self._at("first", name), self._at("last", name)
        return first + (last - first) * progress
