"""How many leaves a wave takes, so that a search notices ``stop`` and the clock in time.

A search looks at its orders between waves. A wave of a large network on one core may last longer
than anybody wants to wait; so waves that took too long are followed by smaller ones.
"""

from typing import Final

LONGEST_WAVE_S: Final = 0.04
"""Waves are made smaller above it, and larger below half of it."""
_VISITS_A_LEAF: Final = 16
"""While a tree is small, the leaves of one wave would be too much alike."""
_FORGETTING: Final = 0.9


class Pace:
    """Sizes the waves of an engine by the time that earlier ones took."""

    def __init__(self, most_leaves: int) -> None:
        self._most_leaves = most_leaves
        self._leaves = most_leaves
        self.reserve_s = 0.0
        """The longest of the latest turns: how late an order may be noticed."""

    def begin_search(self) -> None:
        """Trust half of what was measured: one slow wave must not spoil every move to come."""
        self.reserve_s /= 2

    def leaves(self, visits: int, wanted: int) -> int:
        """For the next wave: at least 1, at most ``wanted``, of a tree with ``visits``."""
        return max(1, min(self._leaves, 1 + visits // _VISITS_A_LEAF, wanted))

    def record(self, leaves: int, seconds: float, aside_s: float = 0.0) -> None:
        """A wave of ``leaves`` took ``seconds``, and what else was done in its turn ``aside_s``."""
        self.reserve_s = max(seconds + aside_s, _FORGETTING * self.reserve_s)
        if seconds > LONGEST_WAVE_S:
            self._leaves = max(1, min(self._leaves, leaves) // 2)
        elif leaves == self._leaves and seconds < LONGEST_WAVE_S / 2:
            self._leaves = min(2 * self._leaves, self._most_leaves)
