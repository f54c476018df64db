"""Which micro-batches of a step each rank computes.

A step's batch is cut into micro-batches whatever the number of ranks; a rank takes a run of whole
ones. So a share changes who computes, and not what is learnt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chess_snn.errors import UsageError
from chess_snn.training.settings import TrainingSettings

_WARM_STEPS: Final = 1
"""The first step of a process compiles and allocates."""
_MEASURED_STEPS: Final = 2


@dataclass(frozen=True, slots=True)
class Division:
    """The positions of one step, dealt out to ranks."""

    batch_size: int
    micro_batch: int
    counts: tuple[int, ...]
    """Micro-batches of each rank, at least one."""

    def positions(self, rank: int) -> slice:
        """The part of the batch that ``rank`` computes."""
        first = sum(self.counts[:rank]) * self.micro_batch
        return slice(first, min(self.batch_size, first + self.counts[rank] * self.micro_batch))


def divide(settings: TrainingSettings, paces: Sequence[float]) -> Division:
    """Deal the micro-batches of a step to ranks so that the last one is done as early as can be.

    Args:
        settings: what a step is.
        paces: micro-batches a second of each rank, in any unit; equal ones share evenly.

    Raises:
        UsageError: there are more ranks than micro-batches.
    """
    num_parts, num_ranks = settings.num_micro_batches, len(paces)
    if num_ranks > num_parts:
        raise UsageError(
            f"{num_ranks} ranks cannot share a step of {num_parts} micro-batches "
            f"(training.batch_size = {settings.batch_size}, training.micro_batch = "
            f"{settings.micro_batch}); use fewer ranks, or set training.micro_batch to "
            f"{max(2, settings.batch_size // num_ranks)} or less"
        )
    counts = [1] * num_ranks
    for _ in range(num_parts - num_ranks):
        # The rank that would finish one more the earliest takes it.
        taker = min(range(num_ranks), key=lambda rank: (counts[rank] + 1) / paces[rank])
        counts[taker] += 1
    return Division(settings.batch_size, settings.micro_batch, tuple(counts))


class PaceGauge:
    """Measures, over the first steps, how many micro-batches a second each rank computes."""

    def __init__(self, num_ranks: int) -> None:
        self._seconds, self._parts = [0.0] * num_ranks, [0] * num_ranks
        self._num_steps = 0

    def add(self, seconds: Sequence[float], counts: Sequence[int]) -> None:
        """Note a step: what each rank's share took, and how many micro-batches it was."""
        self._num_steps += 1
        if self._num_steps > _WARM_STEPS:
            self._seconds = [a + b for a, b in zip(self._seconds, seconds, strict=True)]
            self._parts = [a + b for a, b in zip(self._parts, counts, strict=True)]

    def paces(self) -> list[float] | None:
        """Micro-batches a second of each rank; None until enough steps were measured."""
        if self._num_steps < _WARM_STEPS + _MEASURED_STEPS:
            return None
        return [parts / seconds for parts, seconds in zip(self._parts, self._seconds, strict=True)]
