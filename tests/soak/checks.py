"""One thing that is proved of a campaign, or is not."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, and what is wrong with it."""

    name: str
    faults: tuple[str, ...]
    """None where all is well; one line each."""
    looked_at: str
    """How much: ``96 games``."""

    @property
    def holds(self) -> bool:
        """Whether all is well."""
        return not self.faults

    def __str__(self) -> str:
        """``ok  legality: 96 games``, or what is wrong."""
        if self.holds:
            return f"ok    {self.name}: {self.looked_at}"
        return f"LOST  {self.name}: {'; '.join(self.faults)} ({self.looked_at})"
