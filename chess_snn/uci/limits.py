"""How long a search may last: what ``go`` says, and what a clock leaves for one move.

Of the time left, ``Move Overhead`` is set aside for this move and each of those to come, for what
the engine does not see: the way to the GUI and back. The rest is divided by the moves to the time
control, or by ``_USUAL_MOVES`` where it ends the game, and most of the increment is added. One move
never takes more than a fixed share of what is left. How late the engine itself may notice that its
time is up is measured while it searches, and kept clear of as well (:mod:`chess_snn.uci.pace`).
"""

from dataclasses import dataclass
from typing import Final

_USUAL_MOVES: Final = 40
_INCREMENT_SHARE: Final = 0.8
_MOST_SET_ASIDE: Final = 0.8
"""Of the time left, for the overhead of moves to come: however short it is, some is played with."""
_MOST_OF_THE_CLOCK: Final = 0.4
_MOST_BEFORE_THE_CONTROL: Final = 0.9


@dataclass(frozen=True, slots=True)
class Limits:
    """The arguments of ``go``; numbers are >= 0, and None was not given."""

    nodes: int | None = None
    depth: int | None = None
    mate: int | None = None
    movetime_ms: int | None = None
    wtime_ms: int | None = None
    btime_ms: int | None = None
    winc_ms: int = 0
    binc_ms: int = 0
    movestogo: int | None = None
    infinite: bool = False
    ponder: bool = False
    searchmoves: tuple[str, ...] = ()

    def seconds(self, white_to_move: bool, overhead_s: float) -> float | None:
        """Seconds from ``go`` to ``bestmove``; None where time is no limit.

        Args:
            white_to_move: whose clock counts.
            overhead_s: set aside; at most half of a ``movetime``.
        """
        if self.infinite:
            return None
        if self.movetime_ms is not None:
            movetime_s = self.movetime_ms / 1000
            return movetime_s - min(overhead_s, movetime_s / 2)
        left_ms = self.wtime_ms if white_to_move else self.btime_ms
        if left_ms is None:
            return None
        increment_s = (self.winc_ms if white_to_move else self.binc_ms) / 1000
        return _share_of_clock(left_ms / 1000, increment_s, self.movestogo, overhead_s)


def _share_of_clock(
    left_s: float, increment_s: float, movestogo: int | None, overhead_s: float
) -> float:
    moves = movestogo or _USUAL_MOVES
    to_come_s = min((1 + moves) * overhead_s, _MOST_SET_ASIDE * left_s)
    free_s = max(0.0, left_s - max(overhead_s, to_come_s))
    most = _MOST_BEFORE_THE_CONTROL if movestogo == 1 else _MOST_OF_THE_CLOCK
    return min(free_s / moves + _INCREMENT_SHARE * increment_s, most * free_s)
