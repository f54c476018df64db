"""How far an engine may look: fixed nodes or a fixed depth, never time.

Time would make an engine as strong as the machine is idle; nodes and depth are the same everywhere.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from chess_snn.config import check_choice, check_range

BudgetUnit = Literal["nodes", "depth"]

_MOST = {"nodes": 1_000_000_000, "depth": 100}


@dataclass(frozen=True, slots=True)
class EngineBudget:
    """Of one move."""

    unit: BudgetUnit
    amount: int

    def __post_init__(self) -> None:
        check_choice("an engine's budget", self.unit, get_args(BudgetUnit))
        check_range(f"an engine's {self.unit}", self.amount, ge=1, le=_MOST[self.unit])

    @property
    def command(self) -> str:
        """In UCI."""
        return f"go {self.unit} {self.amount}"

    @property
    def suffix(self) -> str:
        """What stands behind the engine in a player's name: ``@1000``, ``:depth=8``."""
        return f"@{self.amount}" if self.unit == "nodes" else f":depth={self.amount}"
