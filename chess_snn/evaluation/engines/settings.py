"""How engines are run; none of it changes what a healthy engine plays."""

from pydantic import Field

from chess_snn.cores import num_cores
from chess_snn.settings import settings_class


@settings_class("engine")
class EngineSettings:
    """How many processes an engine gets, and how long anybody waits for them."""

    processes: int = Field(default=0, ge=0, le=1024)
    """Of one player, each with one thread; 0 is one for every core this program may use."""
    answer_s: float = Field(default=10.0, gt=0.0, le=86_400.0)
    """An engine that has not moved after so many seconds is taken for dead."""
    start_s: float = Field(default=10.0, gt=0.0, le=3600.0)
    """The same for an engine that has just been started."""
    restarts: int = Field(default=2, ge=0, le=100)
    """How often a position is asked again of a fresh process before its game is void."""
    give_up_after: int = Field(default=8, ge=1)
    """After so many positions without an answer in a row no more are asked: all games are void."""

    @property
    def num_processes(self) -> int:
        """Of one player, >= 1."""
        return self.processes or num_cores()
