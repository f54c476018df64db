"""Record of a soak: its log, the faults, and what was proved."""

import json
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from .faults import Kind

LOG, REPORT = "soak.log", "soak.json"
STATUS_LINE_S = 15.0
"""Between two lines of progress."""


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """One fault that was injected."""

    kind: Kind
    target: str
    run: int
    """Number of the campaign's run, from 1."""
    elapsed_s: float
    """Since the soak began."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is proved of a campaign, or is not."""

    name: str
    fault: str = ""
    """Empty if all is well."""

    def __str__(self) -> str:
        """``ok    every game is legal``, or what is wrong."""
        return f"LOST  {self.name}: {self.fault}" if self.fault else f"ok    {self.name}"


@dataclass(slots=True)
class CampaignRecord:
    """One campaign under faults."""

    number: int
    recipe: str
    runs: int = 0
    """How often it was started or resumed."""
    faults: list[FaultRecord] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    """Ends of runs that did not finish the campaign: exit code and last line."""
    repaired: list[str] = field(default_factory=list)
    """Repairs of damage between two runs."""
    checks: list[Check] = field(default_factory=list)

    @property
    def has_lost(self) -> bool:
        """Whether a check does not hold."""
        return any(check.fault for check in self.checks)

    @property
    def is_whole(self) -> bool:
        """Whether it was checked, and every check holds."""
        return bool(self.checks) and not self.has_lost


@dataclass(slots=True)
class SoakReport:
    """A whole soak."""

    seed: int
    minutes: float
    machine: str
    has_disk: bool
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    seconds: float = 0.0
    campaigns: list[CampaignRecord] = field(default_factory=list)

    @property
    def num_faults(self) -> int:
        """Faults in all campaigns."""
        return sum(len(campaign.faults) for campaign in self.campaigns)

    @property
    def is_whole(self) -> bool:
        """Whether there were faults, and nothing was lost."""
        return self.num_faults > 0 and all(campaign.is_whole for campaign in self.campaigns)

    def verdict(self) -> str:
        """One line for people."""
        if not self.num_faults:
            return "no fault was injected: nothing is shown; give it more --minutes"
        lost = sum(campaign.has_lost for campaign in self.campaigns)
        unfinished = sum(not campaign.checks for campaign in self.campaigns)
        return (
            f"{self.num_faults} faults in {len(self.campaigns)} campaigns: "
            + (f"{lost} of them LOST something" if lost else "nothing was lost")
            + (f"; {unfinished} not finished, and so not audited" if unfinished else "")
        )

    def write(self, out: Path) -> None:
        """Put it beside the log as JSON."""
        body = {"schema": 3, "is_whole": self.is_whole, "verdict": self.verdict()}
        (out / REPORT).write_text(json.dumps(body | asdict(self), indent=1) + "\n")


class Journal:
    """Lines with the seconds since the soak began, on the terminal and in the log."""

    def __init__(self, out: Path) -> None:
        self._log, self._began = out / LOG, time.monotonic()
        self._next_line_s = 0.0

    @property
    def elapsed_s(self) -> float:
        """Since the soak began."""
        return time.monotonic() - self._began

    def say(self, text: object) -> None:
        """A line for the terminal and the log."""
        line = f"{self.elapsed_s:9.1f} s  {text}"
        print(line, flush=True)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{line}\n")

    def progress(self, text: str) -> None:
        """A line now and then."""
        if self.elapsed_s >= self._next_line_s:
            self._next_line_s = self.elapsed_s + STATUS_LINE_S
            self.say(text)
