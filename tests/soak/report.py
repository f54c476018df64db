"""What is kept of a soak: its log, each fault with what followed, and what was proved."""

import json
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .faults import Kind

LOG, REPORT = "soak.log", "soak.json"
STATUS_LINE_S = 15.0
"""Between two lines of progress if there is no terminal to show it in place."""


@dataclass(slots=True)
class FaultRecord:
    """One fault that was injected."""

    number: int
    kind: Kind
    target: str
    time: str
    """ISO 8601, UTC."""
    elapsed_s: float
    """Since the soak began."""
    followed: str = ""
    """What became of the run it met; empty while that is open."""
    recovered_s: float | None = None
    """Until something more was committed, in this run or after a resumption; None if nothing was
    left to commit."""


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
    began_s: float
    ended_s: float = 0.0
    runs: int = 0
    """How often it was started or resumed."""
    faults: list[FaultRecord] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    """What was done about damage between two runs."""
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
    def faults(self) -> list[FaultRecord]:
        """Of all campaigns."""
        return [fault for campaign in self.campaigns for fault in campaign.faults]

    @property
    def is_whole(self) -> bool:
        """Whether there were faults, and nothing was lost."""
        return bool(self.faults) and all(campaign.is_whole for campaign in self.campaigns)

    def verdict(self) -> str:
        """One line for people."""
        if not self.faults:
            return "no fault was injected: nothing is shown; give it more --minutes"
        lost = sum(campaign.has_lost for campaign in self.campaigns)
        unfinished = sum(not campaign.checks for campaign in self.campaigns)
        return (
            f"{len(self.faults)} faults in {len(self.campaigns)} campaigns: "
            + (f"{lost} of them LOST something" if lost else "nothing was lost")
            + (f"; {unfinished} not finished, and so not audited" if unfinished else "")
        )

    def write(self, out: Path) -> None:
        """Put it beside the log as JSON."""
        body = {"schema": 2, "is_whole": self.is_whole, "verdict": self.verdict()}
        (out / REPORT).write_text(json.dumps(body | asdict(self), indent=1) + "\n")


def table_of_faults(faults: Sequence[FaultRecord]) -> Table:
    """Kinds by what followed, and how long until the next thing was committed."""
    table = Table("fault", "what followed", "times", "seconds to the next commit")
    outcomes = Counter((str(fault.kind), fault.followed) for fault in faults)
    for (kind, followed), times in sorted(outcomes.items()):
        waits = sorted(
            fault.recovered_s for fault in faults
            if (fault.kind, fault.followed) == (kind, followed) and fault.recovered_s is not None
        )
        spread = f"median {statistics.median(waits):.0f}, most {waits[-1]:.0f}" if waits else ""
        table.add_row(kind, followed, str(times), spread)
    return table


class Journal:
    """Lines with the seconds since the soak began, on the terminal and in the log."""

    def __init__(self, out: Path) -> None:
        self._log = Console(file=(out / LOG).open("a", encoding="utf-8"), width=120)
        self._terminal = Console(highlight=False)
        self._began = time.monotonic()
        self._next_line_s = 0.0

    @property
    def elapsed_s(self) -> float:
        """Since the soak began."""
        return time.monotonic() - self._began

    def say(self, text: str) -> None:
        """A line for the terminal and the log."""
        self.show(f"{self.elapsed_s:9.1f} s  {text}")

    def show(self, what: str | Table) -> None:
        """A line or a table, in both."""
        for console in (self._terminal, self._log):
            console.print(what, markup=False, soft_wrap=isinstance(what, str))
            console.file.flush()

    def progress(self, text: str) -> None:
        """A line now and then."""
        if self.elapsed_s >= self._next_line_s:
            self._next_line_s = self.elapsed_s + STATUS_LINE_S
            self.say(text)
