"""Values in [-1, 1] as chess programs show them."""

import math
from typing import Final

_PAWN: Final = 90.0
_STEEPNESS: Final = 1.5637541897
"""Of Leela Chess Zero's map from value to centipawns, so that numbers compare with its."""


def centipawns(value_stm: float) -> int:
    """90 tan(1.5637541897 v): rising in v, 0 at 0, about 50 at 1/3 and 12,780 at 1."""
    value = min(1.0, max(-1.0, value_stm))
    return round(_PAWN * math.tan(_STEEPNESS * value))


def moves_to_mate(win_plies: int) -> int:
    """Moves of the winner, negative where the side to move is mated; see ``Line.win_plies``."""
    moves = (abs(win_plies) + 1) // 2
    return moves if win_plies > 0 else -moves


def wdl_per_mille(value_stm: float, draw_share: float) -> tuple[int, int, int]:
    """Win, draw and loss, in 1/1000, that sum to 1000 and differ by the value.

    A tree knows values alone. ``draw_share`` in [0, 1] is what the network says of the position,
    and gives way where the value leaves less room for draws.
    """
    value = min(1.0, max(-1.0, value_stm))
    draw = round(1000 * min(draw_share, 1 - abs(value)))
    win = min(1000 - draw, max(0, round((1000 - draw + 1000 * value) / 2)))
    return win, draw, 1000 - draw - win
