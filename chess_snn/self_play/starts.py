"""Decisions about games before they begin: their starts, and their random streams.

Games start at the beginning, where one side should win, or in an earlier game. Games from the
beginning alone teach little at first: hardly any is won. The other starts are nearer to decisions.
Every game has a random stream of its own, whichever process plays it and beside whichever others.

Dimensions: n games, m restarts, W words a state row, R words of it in a record.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from chess_snn.data.records import START_KINDS
from chess_snn.errors import ConfigError
from chess_snn.games.base import ONGOING, Game
from chess_snn.games.starts import Chooser, greedy_actions, mismatched_starts, random_starts
from chess_snn.jit import kernel
from chess_snn.rng import derive_seed, random_unit, random_words
from chess_snn.self_play.settings import SelfPlaySettings
from chess_snn.settings import check_range
from chess_snn.types import BoolArray, Float64Array, UInt8Array, UInt64Array

ORDINARY: Final = START_KINDS.index("ordinary")
PRACTICE: Final = START_KINDS.index("practice")
RESTART: Final = START_KINDS.index("restart")
MISMATCH: Final = START_KINDS.index("mismatch")

MISMATCH_PLIES: Final = 80
"""Largest number of plies before a mismatch; a game starts after a drawn number from 1 to this."""
_MAX_ATTEMPTS: Final = 100


def game_streams(
    seed: int, purpose: str, num_games: int, first_game: int = 0
) -> UInt64Array:
    """uint64[n]: the key of each game's stream for ``purpose``, which ``seed`` names too.

    The games are number ``first_game`` and the following ones.
    """
    key = np.full(num_games, derive_seed(seed, purpose), np.uint64)
    return random_words(key, first_game + np.arange(num_games, dtype=np.uint64))


def first_units(keys: UInt64Array) -> Float64Array:
    """float64[n] in (0, 1): draw 0 of each of the streams ``keys`` uint64[n]."""
    units = np.empty(len(keys), np.float64)
    _fill_units(keys, units)
    return units


@kernel
def _fill_units(keys: UInt64Array, units: Float64Array) -> None:
    for i in range(len(keys)):
        units[i] = random_unit(keys[i], np.uint64(0))


@dataclass(frozen=True, slots=True)
class Starts:
    """The first positions of n games; none of them has ended."""

    states: UInt64Array
    """uint64[n, W]."""
    kinds: UInt8Array
    """uint8[n]: index into ``START_KINDS``."""

    def part(self, games: slice) -> "Starts":
        """Those of ``games``."""
        return Starts(self.states[games], self.kinds[games])


def draw_starts(
    game: Game, settings: SelfPlaySettings, *, num_games: int, seed: int, progress: float,
    restarts: UInt64Array | None = None, policy: Chooser = greedy_actions, first_game: int = 0,
) -> Starts:
    """The starts of ``num_games`` games; that of game k follows from ``seed``, k and the rest.

    A game is a practice game with the probability ``settings.practice_share(progress)``, a mismatch
    with ``settings.mismatch_share(progress)``, and restarts in the middle of an earlier one with
    ``settings.restart_share(progress)``. All others are ordinary: they begin after up to
    ``settings.random_start_plies`` random plies. Without restarts (there are none before the first
    games are played) their share is ordinary too, while all other games stay what they were.

    Args:
        game: to be played.
        settings: shares and plies.
        num_games: n.
        seed: of the games.
        progress: share of the campaign done, in [0, 1].
        restarts: uint64[m, R], positions to restart from. One that has ended, e.g. by its clock,
            is passed over: the game draws again from its own stream.
        policy: plays the strong side in ``settings.mismatch_policy_share`` of the mismatches, and
            answers for each row by itself.
        first_game: number k of the first of them.

    Raises:
        ConfigError: games end before their start, or all of 100 restarts drawn have ended.
    """
    may_restart = restarts is not None and len(restarts) > 0
    shares = {
        PRACTICE: settings.practice_share(progress),
        MISMATCH: settings.mismatch_share(progress),
        RESTART: settings.restart_share(progress) if may_restart else 0.0,
    }
    streams = partial(game_streams, seed, num_games=num_games, first_game=first_game)
    kinds = _draw_kinds(streams("start_kinds"), shares)
    states = np.empty((num_games, game.spec.state_words), np.uint64)

    ordinary = kinds == ORDINARY
    keys = streams("starts")[ordinary]
    num_plies = keys % np.uint64(settings.random_start_plies + 1)
    states[ordinary] = random_starts(game, keys, num_plies.astype(np.int32))

    practice = kinds == PRACTICE
    if practice.any():  # not every game has these
        states[practice] = game.practice_states(streams("practice")[practice])

    mismatch = kinds == MISMATCH
    by_policy = first_units(streams("mismatch_players")) < settings.mismatch_policy_share
    for rows, strong in ((mismatch & ~by_policy, greedy_actions), (mismatch & by_policy, policy)):
        if not rows.any():
            continue
        keys = streams("mismatches")[rows]
        num_plies = keys % np.uint64(MISMATCH_PLIES) + np.uint64(1)
        states[rows] = mismatched_starts(game, keys, num_plies.astype(np.int32), strong)

    if restarts is not None and may_restart:
        restarted = kinds == RESTART
        keys = streams("restarts")[restarted]
        states[restarted] = _draw_restarts(game, restarts, keys)
    return Starts(states, kinds)


def _draw_kinds(keys: UInt64Array, shares: dict[int, float]) -> UInt8Array:
    """uint8[n]: each kind with its share; those named first take the lowest draws of ``keys``."""
    units = first_units(keys)
    kinds = np.full(len(keys), ORDINARY, np.uint8)
    bounds = np.cumsum(list(shares.values()))
    for kind, bound in reversed(list(zip(shares, bounds, strict=True))):
        kinds[units < bound] = kind
    return kinds


def _draw_restarts(game: Game, restarts: UInt64Array, keys: UInt64Array) -> UInt64Array:
    """uint64[n, W]: a row of ``restarts`` that has not ended for each of ``keys`` uint64[n]."""
    states = np.zeros((len(keys), game.spec.state_words), np.uint64)
    pending = np.arange(len(keys))
    for attempt in range(_MAX_ATTEMPTS):
        words = random_words(keys[pending], np.full(len(pending), attempt, np.uint64))
        drawn = words % np.uint64(len(restarts))
        states[pending, : game.spec.record_words] = restarts[drawn]
        pending = pending[_have_ended(game, states[pending])]
        if not len(pending):
            return states
    raise ConfigError(
        f"{_MAX_ATTEMPTS} of the {len(restarts)} positions to restart from, drawn in a row, have "
        "ended; give positions in which the game goes on, or none"
    )


def _have_ended(game: Game, states: UInt64Array) -> BoolArray:
    batch = game.allocate(len(states))
    game.reset(batch, np.arange(len(states)), states)
    ended: BoolArray = batch.termination != ONGOING
    return ended


@dataclass(frozen=True, slots=True)
class GamePlan:
    """n games to be played, at one moment of the campaign."""

    starts: Starts
    """Positions in which they begin."""
    action_keys: UInt64Array
    """uint64[n]: the stream of each game's searches."""
    chance_keys: UInt64Array
    """uint64[n]: the stream of its chance events."""
    max_plies: int
    """Most plies of a game."""
    material_share: float
    """Weight of material in the value of a truncated game."""

    def __len__(self) -> int:
        """Number of games, n."""
        return len(self.action_keys)

    def part(self, games: slice) -> "GamePlan":
        """The plan of ``games`` alone."""
        return replace(
            self,
            starts=self.starts.part(games),
            action_keys=self.action_keys[games],
            chance_keys=self.chance_keys[games],
        )


def plan_games(
    game: Game, settings: SelfPlaySettings, *, num_games: int, seed: int, progress: float,
    restarts: UInt64Array | None, policy: Chooser, first_game: int = 0,
) -> GamePlan:
    """Plan ``num_games`` games; arguments are those of :func:`chess_snn.self_play.play_games`.

    ``policy`` is the network's, without search; see :func:`draw_starts`.

    Raises:
        ConfigError: an argument is out of range, or a start cannot be drawn.
    """
    check_range("num_games", num_games, ge=1)
    check_range("first_game", first_game, ge=0)
    check_range("progress", progress, ge=0, le=1)
    return GamePlan(
        starts=draw_starts(
            game, settings, num_games=num_games, seed=seed, progress=progress, restarts=restarts,
            policy=policy, first_game=first_game,
        ),
        action_keys=game_streams(seed, "actions", num_games, first_game),
        chance_keys=game_streams(seed, "chance", num_games, first_game),
        max_plies=settings.max_plies(progress),
        material_share=settings.material_share(progress),
    )
