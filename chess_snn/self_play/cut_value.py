"""What a game that the ply cap cuts counts as in training.

Counted as a draw, a cut game would teach that being a rook ahead is worth nothing, and most early
games are cut.

Dimensions: G games.
"""

from typing import Final

import numpy as np

from chess_snn.games.base import Game
from chess_snn.types import Float32Array, UInt64Array

MATERIAL_SCALE: Final = 6.0
"""The balance, in pawns, at which material counts as tanh(1) = 0.76: about a rook and a pawn, which
wins as a rule. A pawn counts as 0.17, a queen as 0.91."""


def cut_values_white(
    game: Game, states: UInt64Array, root_values_white: Float32Array, *, material_share: float,
    limit: float,
) -> Float32Array:
    """float32[G] in [-limit, limit]: material and the search's opinion, mixed; white's view.

    Args:
        game: whose :meth:`~chess_snn.games.base.Game.heuristic_stm` is the material.
        states: uint64[G, W], the positions in which the games were cut.
        root_values_white: float32[G] in [-1, 1], of each game's last search.
        material_share: weight of material in [0, 1]; the rest is the root value's.
        limit: the largest size of a value, in [0, 1].
    """
    material_stm = game.heuristic_stm(states)
    material_white = np.where(game.side_to_move(states) == 0, material_stm, -material_stm)
    material = np.tanh(material_white / MATERIAL_SCALE)
    mixed = material_share * material + (1 - material_share) * root_values_white
    return (limit * mixed).astype(np.float32)
