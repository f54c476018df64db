"""How games end before the rules end them: by resignation or by truncation at a number of plies.

A side resigns when the root values of its last two searches were both below the threshold. It still
plays its move, so that a record replays to its end, and does not resign if that ended the game.

A truncated game gets a value of its own in training. Counted as a draw, it would teach
that being a rook ahead is worth nothing, and most early games end so.

Dimensions: n games, N positions in all, G games in play.
"""

import math
from typing import Final

import numpy as np

from chess_snn.data.records import GameRecords
from chess_snn.games.base import ONGOING, Game
from chess_snn.self_play.starts import first_units, game_streams
from chess_snn.types import (
    BoolArray,
    Float32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)

MATERIAL_SCALE: Final = 6.0
"""The balance, in pawns, at which material counts as tanh(1) = 0.76: about a rook and a pawn, which
wins as a rule. A pawn counts as 0.17, a queen as 0.91."""
NEVER: Final = -math.inf
"""Threshold of a game without resignation: no value is below it."""

THRESHOLDS: Final = tuple(-hundredths / 100 for hundredths in range(50, 100))
"""The thresholds that :func:`calibrate_threshold` tries, highest first."""

LEAST_RESIGNATIONS: Final = 50
"""Fewer games that would have been resigned say too little about the share of mistakes."""

_SEARCHES: Final = 2
_NUM_SIDES: Final = 2


def cut_values_white(
    game: Game, states: UInt64Array, root_values_white: Float32Array, *, material_share: float,
    limit: float,
) -> Float32Array:
    """float32[G] in [-limit, limit]: material and the search's opinion, mixed; white's view.

    Args:
        game: whose :meth:`~chess_snn.games.base.Game.heuristic_stm` is the material.
        states: uint64[G, W], the positions in which the games were truncated.
        root_values_white: float32[G] in [-1, 1], of each game's last search.
        material_share: weight of material in [0, 1]; the rest is the root value's.
        limit: the largest size of a value, in [0, 1].
    """
    material_stm = game.heuristic_stm(states)
    material_white = np.where(game.side_to_move(states) == 0, material_stm, -material_stm)
    material = np.tanh(material_white / MATERIAL_SCALE)
    mixed = material_share * material + (1 - material_share) * root_values_white
    return (limit * mixed).astype(np.float32)


def game_thresholds(
    threshold: float | None, played_on: float, *, num_games: int, seed: int, first_game: int = 0
) -> Float32Array:
    """float32[n]: the threshold of each game, ``NEVER`` in the share ``played_on`` of them.

    Which games are played on follows from ``seed`` and the game's number, which is ``first_game``
    for the first of them. With ``threshold`` None no side resigns in any.
    """
    if threshold is None:
        return np.full(num_games, NEVER, np.float32)
    units = first_units(game_streams(seed, "played_on", num_games, first_game))
    return np.where(units < played_on, NEVER, threshold).astype(np.float32)


class ResignationWatch:
    """Follows n games and says which side resigns; ``thresholds`` float32[n], one per game."""

    def __init__(self, thresholds: Float32Array) -> None:
        self._thresholds = thresholds
        # Of each side: its latest searches in a row below the threshold.
        self._low_searches = np.zeros((len(thresholds), _NUM_SIDES), np.int32)

    def add_ply(
        self, games: Int64Array, sides: UInt8Array, values_stm: Float32Array
    ) -> BoolArray:
        """bool[G]: whether the side to move resigns, after the newest search of each game.

        Args:
            games: int64[G], indices in [0, n).
            sides: uint8[G], the side to move in each.
            values_stm: float32[G], the root values of the search.
        """
        are_low = values_stm < self._thresholds[games]
        counts = np.where(are_low, self._low_searches[games, sides] + 1, 0)
        self._low_searches[games, sides] = counts
        resigns: BoolArray = counts >= _SEARCHES
        return resigns


def is_resigned(records: GameRecords) -> BoolArray:
    """bool[n]: which games were resigned; they have an outcome that the rules did not give."""
    resigned: BoolArray = (records.terminations == ONGOING) & (records.outcomes_white != 0)
    return resigned


def calibrate_threshold(game: Game, records: GameRecords, error_limit: float) -> float | None:
    """The highest of ``THRESHOLDS`` at which resigning is seldom a mistake.

    It looks at the games that were played to their end. At a threshold, some of them would have
    been resigned; where the resigning side did not lose in the end (a truncated game counts as
    not lost), that was a mistake. Above the threshold the games were played with, these are not a
    fair sample, but one with too many mistakes in it, so the error is on the careful side.

    Args:
        game: whose records they are.
        records: games, of which some may have been resigned.
        error_limit: most mistakes, as a share of the games that would have been resigned.

    Returns:
        The threshold; None if at every one there are more mistakes, or fewer than
        ``LEAST_RESIGNATIONS`` games that would have been resigned.
    """
    game_of = np.repeat(np.arange(records.num_games), np.diff(records.game_offsets))
    sides = game.side_to_move(records.states)
    highs = _highs_of_two(records, game_of, sides)
    highs[is_resigned(records)[game_of]] = np.inf
    winners = records.outcomes_white[game_of]
    has_lost = np.where(sides == 0, winners, -winners) < 0
    for threshold in THRESHOLDS:
        rows = np.flatnonzero(highs < threshold)
        _, firsts = np.unique(game_of[rows], return_index=True)  # a game is resigned once
        if len(firsts) < LEAST_RESIGNATIONS:
            return None  # a lower threshold has fewer
        num_mistakes = np.count_nonzero(~has_lost[rows[firsts]])
        if num_mistakes <= error_limit * len(firsts):
            return threshold
    return None


def _highs_of_two(
    records: GameRecords, game_of: Int64Array, sides: UInt8Array
) -> Float32Array:
    """float32[N]: a side resigns at each position if the threshold is above this."""
    highs = np.full(records.num_positions, np.inf, np.float32)
    for side in range(_NUM_SIDES):
        rows = np.flatnonzero(sides == side)
        earlier, later = rows[:-1], rows[1:]
        of_one_game = game_of[earlier] == game_of[later]
        earlier, later = earlier[of_one_game], later[of_one_game]
        highs[later] = np.maximum(records.values_stm[earlier], records.values_stm[later])
    # The move played there ended the game.
    highs[records.game_offsets[1:][records.terminations != ONGOING] - 1] = np.inf
    return highs
