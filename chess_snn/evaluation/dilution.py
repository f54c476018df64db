"""Any player made weaker in measured steps: some of its moves are drawn blindly.

Diluting with random moves spans the gap between a random player and an engine's weakest setting,
continuously and without a word about how the engine weakens itself.

Dimensions: G games.
"""

import re
from typing import Final

import numpy as np

from chess_snn.config import check_range
from chess_snn.errors import ConfigError
from chess_snn.evaluation.players import Player, ProgramFacts, program_of
from chess_snn.games.base import NO_ACTION, GameBatch
from chess_snn.games.sampling import random_legal_actions
from chess_snn.jit import kernel
from chess_snn.rng import random_unit, random_word
from chess_snn.types import BoolArray, Int16Array, Int32Array, UInt64Array

_DILUTED: Final = re.compile(r"(?P<player>.*)~(?P<percent>[0-9]+(?:\.[0-9]+)?)")

# Counters beyond any ply and any other purpose: the player within draws from the same keys.
_COIN_COUNTER: Final = np.uint64(1) << np.uint64(35)
_MOVE_COUNTER: Final = _COIN_COUNTER + np.uint64(1)


def split_dilution(text: str) -> tuple[str, float | None]:
    """(player, percent) of ``PLAYER~PERCENT``; (``text``, None) where nothing is diluted."""
    found = _DILUTED.fullmatch(text)
    return (text, None) if found is None else (found["player"], float(found["percent"]))


def check_dilution(name: str, percent: float) -> None:
    """Refuse to make ``percent`` of the moves of the player called ``name`` random.

    Raises:
        ConfigError: it is not in (0, 100), or the player is diluted already.
    """
    check_range(f"percent of random moves for {name!r}", percent, gt=0.0, lt=100.0)
    if split_dilution(name)[1] is not None:
        raise ConfigError(f"player {name!r} is diluted already; give one percentage")


class DilutedPlayer:
    """At each ply plays a uniformly random legal move with a fixed probability, else asks another.

    Which plies are random is drawn from each game's own stream: it depends on the game and the
    ply, and neither on the other games nor on the player within.
    """

    def __init__(self, player: Player, percent: float) -> None:
        """``percent`` of the moves are random, in (0, 100).

        Raises:
            ConfigError: as :func:`check_dilution`.
        """
        check_dilution(player.name, percent)
        self.name: str = f"{player.name}~{percent:g}"
        self._player, self._share = player, percent / 100.0

    @property
    def program(self) -> ProgramFacts | None:
        """Of the player within; None where that is one of ours."""
        return program_of(self._player)

    def choose(self, batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
        """See :meth:`chess_snn.evaluation.players.Player.choose`."""
        is_random, move_keys = np.empty(len(batch), np.bool_), np.empty_like(keys)
        _draw(keys, plies, self._share, is_random, move_keys)
        actions = np.full(len(batch), NO_ACTION, dtype=np.int16)
        blind = np.flatnonzero(is_random)
        actions[blind] = random_legal_actions(batch.take(blind), move_keys[blind], plies[blind])
        asked = np.flatnonzero(~is_random & (batch.num_legal > 0))
        if len(asked):
            actions[asked] = self._player.choose(batch.take(asked), keys[asked], plies[asked])
        return actions


@kernel
def _draw(
    keys: UInt64Array, plies: Int32Array, share: float, is_random: BoolArray,
    move_keys: UInt64Array,
) -> None:
    """Toss each game's coin of this ply, and give its random moves a stream of their own."""
    for g in range(len(keys)):
        coins = random_word(keys[g], _COIN_COUNTER)
        is_random[g] = random_unit(coins, np.uint64(plies[g])) < share
        move_keys[g] = random_word(keys[g], _MOVE_COUNTER)
