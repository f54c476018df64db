"""How engines are run; none of it changes what a healthy engine plays."""

from dataclasses import dataclass

from chess_snn.config import check_range
from chess_snn.cores import num_cores


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How many processes an engine gets, and how long anybody waits for them."""

    processes: int = 0
    """Of one player, each with one thread; 0 is one for every core this program may use."""
    answer_s: float = 10.0
    """An engine that has not moved after so many seconds is taken for dead."""
    start_s: float = 10.0
    """The same for an engine that has just been started."""
    restarts: int = 2
    """How often a position is asked again of a fresh process before its game is void."""
    give_up_after: int = 8
    """After so many positions without an answer in a row no more are asked: all games are void."""

    def __post_init__(self) -> None:
        check_range("engine.processes", self.processes, ge=0, le=1024)
        check_range("engine.answer_s", self.answer_s, gt=0.0, le=86_400.0)
        check_range("engine.start_s", self.start_s, gt=0.0, le=3600.0)
        check_range("engine.restarts", self.restarts, ge=0, le=100)
        check_range("engine.give_up_after", self.give_up_after, ge=1)

    @property
    def num_processes(self) -> int:
        """Of one player, >= 1."""
        return self.processes or num_cores()
