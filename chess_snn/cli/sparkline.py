"""Curves of one line of text."""

import math
from collections.abc import Sequence
from typing import Final

BLOCKS: Final = "▁▂▃▄▅▆▇█"
PLAIN: Final = "_.-=+*%#"
"""Where the terminal's encoding has no blocks."""


def sparkline(
    values: Sequence[float], width: int, *, low: float | None = None, high: float | None = None,
    levels: str = BLOCKS,
) -> str:
    """The newest ``width`` of ``values``, one character each, the oldest first.

    Args:
        values: those that are not finite are passed over.
        width: most characters.
        low: the value of the lowest level; by default the least of those shown.
        high: the value of the highest level; by default the greatest of those shown.
        levels: the characters, lowest first.
    """
    shown = [value for value in values if math.isfinite(value)][-width:]
    if not shown:
        return ""
    bottom, top = min(shown) if low is None else low, max(shown) if high is None else high
    span = top - bottom
    middle = (len(levels) - 1) // 2
    return "".join(
        levels[_level((value - bottom) / span, len(levels)) if span > 0 else middle]
        for value in shown
    )


def _level(share: float, num_levels: int) -> int:
    return min(num_levels - 1, max(0, math.floor(share * num_levels)))
