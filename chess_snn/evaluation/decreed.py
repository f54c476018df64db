"""Ratings that were once declared instead of measured.

Published self-play systems call their yardsticks "random (400)", "greedy material (800)" and
"minimax depth 2 (1200)". The opponents exist here under the names below; the numbers are kept to
be shown beside what the players are found to be worth.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

DECREED_RATINGS: Final[Mapping[str, int]] = MappingProxyType(
    {"random": 400, "greedy": 800, "minimax:2": 1200}
)
"""Elo by decree of players that :func:`chess_snn.evaluation.make_player` knows."""
