"""What is kept of a soak: each fault with what followed, each campaign with what was proved."""

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Table

from .checks import Check
from .schedule import Kind

SCHEMA = 1
REPORT = "soak.json"


@dataclass(slots=True)
class FaultRecord:
    """One fault that was done."""

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
    """Until something more was committed, in this run or after a resumption; None where nothing
    was left to commit."""


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
    mended: list[str] = field(default_factory=list)
    """What was done about damage between two runs."""
    checks: list[Check] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    """What killed processes left in the folder for temporary files that is the system's."""
    longest_end_s: float = 0.0
    """Until the last process of a run was gone after the campaign itself."""

    @property
    def has_lost(self) -> bool:
        """Whether a check does not hold."""
        return not all(check.holds for check in self.checks)

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
    disk: str
    version: str
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
        body = {"schema": SCHEMA, "is_whole": self.is_whole, "verdict": self.verdict()}
        (out / REPORT).write_text(json.dumps(body | asdict(self), indent=1) + "\n")


def table_of_faults(faults: Sequence[FaultRecord]) -> Table:
    """Kinds by what followed, and how long until the next thing was committed."""
    table = Table(title="faults by kind and outcome")
    for column in ("fault", "times", "what followed", "times", "seconds to the next commit"):
        table.add_column(column, justify="right" if column == "times" else "left")
    for kind in Kind:
        of_kind = [fault for fault in faults if fault.kind == kind]
        outcomes = Counter(fault.followed for fault in of_kind)
        for row, (followed, times) in enumerate(sorted(outcomes.items())):
            waits = [fault.recovered_s for fault in of_kind if fault.followed == followed]
            first = (str(kind), str(len(of_kind))) if row == 0 else ("", "")
            table.add_row(*first, followed, str(times), _spread(waits))
    return table


def _spread(waits: Sequence[float | None]) -> str:
    known = sorted(wait for wait in waits if wait is not None)
    if not known:
        return "nothing was left to commit"
    return f"{statistics.median(known):.0f} in the middle, {known[-1]:.0f} at most"


def table_of_checks(campaigns: Sequence[CampaignRecord]) -> Table:
    """What was proved, over all campaigns."""
    table = Table(title="proved of each campaign when it was finished")
    for column in ("check", "campaigns", "holds"):
        table.add_column(column, justify="left" if column == "check" else "right")
    checks = [check for campaign in campaigns for check in campaign.checks]
    for name in dict.fromkeys(check.name for check in checks):
        named = [check for check in checks if check.name == name]
        table.add_row(name, str(len(named)), str(sum(check.holds for check in named)))
    return table
