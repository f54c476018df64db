"""Limits of a search: what ``go`` says, what a clock leaves for one move, when it ends.

Of the time left, ``Move Overhead`` is reserved for this move and each of those to come, for what
the engine does not see: the way to the GUI and back. The rest is divided by the moves to the time
control, or by ``_USUAL_MOVES`` where it ends the game, and most of the increment is added. One move
never takes more than a fixed share of what is left, and it takes less where the rest of its time
cannot change it. How late the engine itself may notice that its time is up is measured while it
searches, and kept clear of as well (:class:`chess_snn.uci.engine.Pace`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chess_snn.search import MAX_SIMULATIONS, Line
from chess_snn.uci.options import Options
from chess_snn.uci.report import moves_to_mate

_USUAL_MOVES: Final = 30
_INCREMENT_SHARE: Final = 0.8
_MOST_RESERVED: Final = 0.8
"""Most of the time left that is kept for the overhead of moves to come: some is always used."""
_MOST_OF_THE_CLOCK: Final = 0.4
_MOST_BEFORE_THE_CONTROL: Final = 0.9
_MANY: Final = 2**31
_MARGIN: Final = 1.25
"""A search may go on faster than it began."""
_LEAST_S: Final = 1e-3


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
    perft: int | None = None
    """Plies of a count of moves, which takes the place of the search."""

    def seconds(self, white_to_move: bool, overhead_s: float) -> float | None:
        """Seconds from ``go`` to ``bestmove``; None without a time limit.

        Args:
            white_to_move: whose clock counts.
            overhead_s: reserved; at most half of a ``movetime``.
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
    to_come_s = min((1 + moves) * overhead_s, _MOST_RESERVED * left_s)
    free_s = max(0.0, left_s - max(overhead_s, to_come_s))
    most = _MOST_BEFORE_THE_CONTROL if movestogo == 1 else _MOST_OF_THE_CLOCK
    return min(free_s / moves + _INCREMENT_SHARE * increment_s, most * free_s)


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a search; the first limit that is met ends it."""

    seconds: float | None
    """Seconds of the clock, from ``go`` or ``ponderhit``."""
    simulations: int | None
    """New ones; those kept from earlier searches come on top."""
    depth: int | None
    """Plies of the best line."""
    mate: int | None
    """Moves of a proved mate; None: any proved end will do."""
    is_of_clock: bool = False
    """True if time that is left is for later moves."""

    def is_spent(
        self, simulations: int, seconds: float, reserve_s: float, lines: Sequence[Line]
    ) -> bool:
        """Return whether to end now, ``reserve_s`` being how long another turn may take."""
        if self.seconds is not None and seconds + reserve_s >= self.seconds:
            return True
        if self.simulations is not None and simulations >= self.simulations:
            return True
        return self.depth is not None and bool(lines) and len(lines[0].actions) >= self.depth

    def simulations_left(self, simulations: int) -> int:
        """Return how many more may be made, after ``simulations``."""
        return _MANY if self.simulations is None else self.simulations - simulations

    def most_to_come(self, simulations: int, seconds: float) -> float:
        """Simulations that the rest of a clock's share allows, after some in ``seconds``.

        Infinite where nothing is gained by ending earlier.
        """
        if self.seconds is None or not self.is_of_clock or simulations == 0:
            return math.inf
        return _MARGIN * simulations * (self.seconds - seconds) / max(seconds, _LEAST_S)

    def is_decided(self, lines: Sequence[Line]) -> bool:
        """Return whether the tree has proved what more searching could not better."""
        plies = lines[0].win_plies if lines else 0
        if plies <= 0 or self.mate is None:
            return plies != 0
        return moves_to_mate(plies) <= self.mate


UNLIMITED: Final = Budget(seconds=None, simulations=None, depth=None, mate=None)


def budget_of(limits: Limits, options: Options, *, white_to_move: bool, num_moves: int) -> Budget:
    """Return what ``limits`` allow a search whose position has ``num_moves`` legal moves.

    Where they name neither nodes, nor depth, nor a time for the side to move, ``Simulations`` does.
    A depth alone is sought with ``MAX_SIMULATIONS`` at most: where all moves end the game, no line
    ever happens.
    """
    seconds = limits.seconds(white_to_move, options.move_overhead_ms / 1000)
    simulations = limits.nodes
    if simulations is None and seconds is None:
        simulations = options.simulations if limits.depth is None else MAX_SIMULATIONS
    is_of_clock = limits.movetime_ms is None and seconds is not None
    if is_of_clock and num_moves == 1:
        seconds = 0.0  # there is nothing to decide
    return Budget(
        seconds=seconds, simulations=simulations, depth=limits.depth, mate=limits.mate,
        is_of_clock=is_of_clock,
    )
