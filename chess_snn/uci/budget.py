"""When a search ends by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chess_snn.search import MAX_SIMULATIONS, Line
from chess_snn.uci.limits import Limits
from chess_snn.uci.options import Options
from chess_snn.uci.score import moves_to_mate

_MANY: Final = 2**31


@dataclass(frozen=True, slots=True)
class Budget:
    """What a search may take; the first limit that is met ends it."""

    seconds: float | None
    """Of the clock, from ``go`` or ``ponderhit``."""
    simulations: int | None
    """New ones; those kept from earlier searches come on top."""
    depth: int | None
    """Plies of the best line."""
    mate: int | None
    """Moves of a proved mate; None: any proved end will do."""

    def is_spent(
        self, simulations: int, seconds: float, reserve_s: float, lines: Sequence[Line]
    ) -> bool:
        """Whether to end now, ``reserve_s`` being how long another turn may take."""
        if self.seconds is not None and seconds + reserve_s >= self.seconds:
            return True
        if self.simulations is not None and simulations >= self.simulations:
            return True
        return self.depth is not None and bool(lines) and len(lines[0].actions) >= self.depth

    def simulations_left(self, simulations: int) -> int:
        """How many more may be made, after ``simulations``."""
        return _MANY if self.simulations is None else self.simulations - simulations

    def is_decided(self, lines: Sequence[Line]) -> bool:
        """Whether the tree has proved what more searching could not better."""
        plies = lines[0].win_plies if lines else 0
        if plies <= 0 or self.mate is None:
            return plies != 0
        return moves_to_mate(plies) <= self.mate


UNLIMITED: Final = Budget(seconds=None, simulations=None, depth=None, mate=None)


def budget_of(limits: Limits, options: Options, *, white_to_move: bool, num_moves: int) -> Budget:
    """What ``limits`` allow a search whose position has ``num_moves`` legal moves.

    Where they name neither nodes, nor depth, nor a time for the side to move, ``Simulations`` does.
    A depth alone is sought with ``MAX_SIMULATIONS`` at most: where all moves end the game, no line
    ever comes to it.
    """
    seconds = limits.seconds(white_to_move, options.move_overhead_ms / 1000)
    simulations = limits.nodes
    if simulations is None and seconds is None:
        simulations = options.simulations if limits.depth is None else MAX_SIMULATIONS
    if limits.movetime_ms is None and seconds is not None and num_moves == 1:
        seconds = 0.0  # the clock runs, and there is nothing to decide
    return Budget(seconds=seconds, simulations=simulations, depth=limits.depth, mate=limits.mate)
