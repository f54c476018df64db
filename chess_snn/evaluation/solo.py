"""Complete games of a one-player game, on seeds that every player gets alike.

A seed names a game's start and all of its chance events: event n of a game is draw n of the seed's
stream, for every player and in any batch. Two players on the same seeds are compared with
less noise than on different ones.

Dimensions: n games, G of them still going on.
"""

import math
import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from chess_snn.errors import ConfigError
from chess_snn.evaluation.played_moves import MoveLog
from chess_snn.evaluation.players import Player, choose_legal
from chess_snn.evaluation.scores import mean_interval
from chess_snn.games.base import ONGOING, Game, GameSpec
from chess_snn.rng import derive_seed, random_words
from chess_snn.settings import check_range
from chess_snn.types import (
    Float64Array,
    Int16Array,
    Int32Array,
    Int64Array,
    Json,
    Progress,
    UInt8Array,
    UInt64Array,
)

SEED_KEY: Final = "seed:"
"""Begins the name of a seed where matches are stored or rated; 16 hexadecimal digits follow."""
_CHANCE: Final = derive_seed(0, "chance")
"""The draw of a seed's stream that is the key of its game's events."""


@dataclass(frozen=True, slots=True, eq=False)
class SoloGames:
    """The games of one player on n seeds."""

    points: Float64Array
    """float64[n]: the game's own score."""
    milestones: Int64Array
    """int64[n]: of the last position, see :meth:`chess_snn.games.base.Game.milestones`."""
    terminations: UInt8Array
    """uint8[n]: why the game ended; ``ONGOING`` (0) if it was truncated."""
    plies: Int32Array
    """int32[n]."""
    actions: Int16Array
    """int16[sum of plies]: the actions played, game after game."""
    seconds: float
    """Wall clock of the playing."""


def match_seeds(seed: int, num_seeds: int) -> UInt64Array:
    """uint64[num_seeds]: the seeds that ``seed`` names; a longer list begins with the shorter."""
    key = np.full(num_seeds, derive_seed(seed, "seeds"), np.uint64)
    return random_words(key, np.arange(num_seeds, dtype=np.uint64))


def seed_keys(seeds: UInt64Array) -> tuple[str, ...]:
    """Return the names of ``seeds`` uint64[n] wherever matches are stored or rated."""
    return tuple(f"{SEED_KEY}{seed:016x}" for seed in seeds.tolist())


def seeds_of_keys(keys: tuple[str, ...]) -> UInt64Array:
    """uint64[n]: the seeds that :func:`seed_keys` calls ``keys``.

    Raises:
        ValueError: one is not the name of a seed.
    """
    return np.array([int(key.removeprefix(SEED_KEY), 16) for key in keys], np.uint64)


def chance_words(seeds: UInt64Array, plies: Int32Array) -> UInt64Array:
    """uint64[G]: what decides the event after the move at ``plies`` int32[G] of each game."""
    keys = random_words(seeds, np.full_like(seeds, _CHANCE))
    return random_words(keys, plies.astype(np.uint64))


def play_seeds(
    game: Game, player: Player, seeds: UInt64Array, *, max_plies: int,
    on_progress: Progress | None = None,
) -> SoloGames:
    """Let ``player`` play the game of every seed to its end.

    The player's own random stream follows from the seed and its name.

    Args:
        game: of one player.
        player: who plays.
        seeds: uint64[n], n >= 1.
        max_plies: a game is truncated after this many moves; its points until then count.
        on_progress: called after every move with games finished and games in all.

    Raises:
        ConfigError: the game is not for one player, there is no seed, or ``max_plies`` < 1.
        IllegalMoveError: the player chose an action that is not legal.
    """
    check_range("evaluation.max_plies", max_plies, ge=1)
    check_range("evaluation.num_openings", len(seeds), ge=1)
    if game.spec.num_players != 1:
        raise ConfigError(
            f"only a game of one player is played alone, and {game.spec.name} has "
            f"{game.spec.num_players}"
        )
    start, num_games = time.perf_counter(), len(seeds)
    keys = random_words(seeds, np.full_like(seeds, derive_seed(0, "player", player.name)))
    batch, log = game.allocate(num_games), MoveLog()
    game.reset(batch, np.arange(num_games), game.initial_states(seeds))
    rewards, milestones = np.zeros(num_games), np.zeros(num_games, np.int64)
    terminations, plies = np.zeros(num_games, np.uint8), np.zeros(num_games, np.int32)
    live = np.arange(num_games)
    while len(live):
        actions = choose_legal(game, player, batch, keys[live], plies[live])
        log.add(live, actions)
        chance = chance_words(seeds[live], plies[live]) if game.spec.is_stochastic else None
        game.step(batch, actions, chance)
        rewards[live] += batch.reward
        plies[live] += 1
        is_over = (batch.termination != ONGOING) | (plies[live] >= max_plies)
        if is_over.any():
            over, goes_on = np.flatnonzero(is_over), np.flatnonzero(~is_over)
            terminations[live[over]] = batch.termination[over]
            milestones[live[over]] = game.milestones(batch.state[over])
            batch, live = batch.take(goes_on), live[goes_on]
        if on_progress is not None:
            on_progress(num_games - len(live), num_games)
    return SoloGames(
        points=game.spec.score_unit * rewards, milestones=milestones, terminations=terminations,
        plies=plies, actions=log.by_game(plies), seconds=time.perf_counter() - start,
    )


def point_figures(
    spec: GameSpec, points: Float64Array, milestones: Int64Array, plies: Int32Array
) -> Json:
    """Figures of n games, of which there is one at least; arrays as of :class:`SoloGames`.

    ``low`` and ``high`` bound the mean with 95 %, and are None where one game is too few;
    ``plies`` is their mean, and ``reached`` the share of games at each of ``GameSpec.milestones``.
    """
    low, high = mean_interval(points)
    return {
        "games": len(points), "mean": float(points.mean()), "low": _finite(low),
        "high": _finite(high), "median": float(np.median(points)), "best": float(points.max()),
        "plies": float(plies.mean()),
        "reached": {
            str(milestone): float((milestones >= milestone).mean()) for milestone in spec.milestones
        },
    }


def paired_difference(points_a: Float64Array, points_b: Float64Array) -> Json:
    """Return a's lead over b on the same seeds, float64[n] each: ``mean``, ``low``, ``high``.

    The interval is the 95 % one of the mean difference; its ends are None for a single seed.
    """
    ahead = points_a - points_b
    low, high = mean_interval(ahead)
    return {"mean": float(ahead.mean()), "low": _finite(low), "high": _finite(high)}


def interval_text(figures: Json) -> str:
    """``11,907 (11,267 to 12,548)``: the mean of points and its 95 % interval."""
    if figures["low"] is None:
        return f"{figures['mean']:,.0f}"
    return f"{figures['mean']:,.0f} ({figures['low']:,.0f} to {figures['high']:,.0f})"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
