"""One campaign of a soak: disturbed, resumed as a user would, and audited when it is finished."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from .audit import Twin, audit_folder
from .campaigns import Recipe, committed, has_all_receipts
from .checks import Check
from .disk import Disk, SmallDisk
from .disturber import Disturber
from .injections import Injected, Scene
from .journal import Journal
from .mlflow_server import MlflowServer
from .outcomes import ERROR, FINISHED, Outcomes, traceback_errors
from .processes import MARK, RunningCampaign, command_line, end_all, wait_until_gone
from .repair import find_damage, mend, verify
from .report import CampaignRecord, FaultRecord
from .schedule import Kind, PlannedFault
from .views import audit_views

POLL_S = 0.25
GONE_S = 60.0
"""Longest wait for the processes of a run to be gone after it; 5 s are promised, on a machine that
has nothing else to do."""
STUCK_S = 900.0
"""Without a commit for this long, a campaign has hung."""


class RoundFailedError(Exception):
    """The campaign cannot be finished; what is wrong is in its record."""


@dataclass(frozen=True, slots=True)
class Site:
    """What the campaigns of a soak share."""

    out: Path
    journal: Journal
    disk: Disk
    mlflow: MlflowServer
    mark: str
    """Value of :data:`processes.MARK` in every process of theirs."""


class Round:
    """The campaign that ``record`` tells of."""

    def __init__(
        self, site: Site, recipe: Recipe, seed: int, record: CampaignRecord,
        planned: Iterator[PlannedFault], is_over: Callable[[], bool],
    ) -> None:
        """A campaign of ``recipe`` under the ``planned`` faults, until ``is_over()``."""
        self.record = record
        self._site, self._recipe, self._seed = site, recipe, seed
        name = f"campaign-{record.number:03d}"
        self._directory = site.disk.path / name
        self._home = site.out / name
        self._scratch = self._home / "tmp"
        self._terminal = self._home / "terminal.log"
        self._outcomes = Outcomes()
        self._disturber = Disturber(planned, is_over, self._note_fault, site.journal.say)
        self._committed: frozenset[Path] = frozenset()
        self._last_commit_s = 0.0
        self._read = 0
        """Characters of the terminal that earlier runs printed."""

    def run(self, twin: Twin) -> None:
        """Start, disturb, resume until it is finished; then audit it against its twin."""
        self._home.mkdir(parents=True)
        self._scratch.mkdir()
        try:
            self._finish()
            self._audit(twin)
        except RoundFailedError:
            self._site.journal.say(f"campaign {self.record.number} is given up")
        finally:
            self._disturber.undo_all()
            end_all(self._site.mark)
            self.record.ended_s = self._site.journal.elapsed_s
            self.record.leftovers = sorted(path.name for path in self._scratch.iterdir())
        self._keep_or_remove()

    def _finish(self) -> None:
        arguments = ["start", "--dir", str(self._directory), *self._recipe.options(self._seed)]
        while True:
            code, scene = self._run_once(arguments)
            self._settle(code)
            self._disturber.disturb_between_runs(scene)
            # Somebody whose campaign was killed resumes it; who reads of damage mends it first.
            has_mended = code in (FINISHED, ERROR) and self._mend()
            if code == FINISHED and not has_mended:
                return
            if code == ERROR and self._outcomes.has_met_mlflow:
                self._site.mlflow.wait()  # a finished campaign says that it cannot be recorded
            arguments = ["resume", str(self._directory)]

    def _run_once(
        self, arguments: Sequence[str], is_disturbed: bool = True
    ) -> tuple[int, Scene]:
        """One run to its end, which faults may bring about; its exit code."""
        campaign = RunningCampaign(arguments, self._terminal, {
            MARK: self._site.mark, "TMPDIR": str(self._scratch),
            "MLFLOW_TRACKING_URI": self._site.mlflow.url,
        })
        scene = Scene(
            self._directory, campaign, self._site.mlflow, self._site.disk, self._outcomes.damages
        )
        self.record.runs += 1
        self._disturber.begin_run()
        self._last_commit_s = time.monotonic()
        while (code := campaign.exit_code()) is None:
            self._expect_stop()
            self._note_commits()
            self._disturber.undo_what_is_due()
            if is_disturbed:
                self._disturber.disturb(scene)
            if time.monotonic() - self._last_commit_s > STUCK_S:
                self._fail("it goes on", f"nothing was committed for {STUCK_S:.0f} s")
            self._site.journal.progress(self._progress())
            time.sleep(POLL_S)
        self._note_commits()
        return code, scene

    def _expect_stop(self, code: int | None = None) -> None:
        """See that a run that was told to stop does; ``code`` is None while it is alive."""
        elapsed_s, is_finished = self._site.journal.elapsed_s, has_all_receipts(self._directory)
        wrong = self._outcomes.unheeded_stop(elapsed_s, code, is_finished)
        if wrong is not None:
            self._fail("a stop signal ends a run", f"run {self.record.runs}: {wrong}")

    def _note_fault(self, kind: Kind, injected: Injected) -> None:
        journal = self._site.journal
        fault = FaultRecord(
            len(self.record.faults), kind, injected.target,
            datetime.now(UTC).isoformat(timespec="seconds"), journal.elapsed_s,
        )
        self.record.faults.append(fault)
        self._outcomes.add(fault, injected.damage)
        journal.say(f"FAULT {self.record.number}.{fault.number}  {kind}: {injected.target}")

    def _note_commits(self) -> None:
        now_committed = committed(self._directory)
        if now_committed - self._committed:
            self._last_commit_s = time.monotonic()
            self._outcomes.note_commit(self._site.journal.elapsed_s)
        self._committed = now_committed

    def _settle(self, code: int) -> None:
        """See what a run that has ended left behind, and why it ended."""
        self._disturber.undo_of_run()
        began = time.monotonic()
        left = wait_until_gone(self._site.mark, GONE_S)
        self.record.longest_end_s = max(self.record.longest_end_s, time.monotonic() - began)
        if left:
            self._fail("no process is left", "; ".join(map(command_line, left)))
        printed = self._terminal.read_text(errors="replace")
        end = f"run {self.record.runs} ended with code {code}: {_last_line(printed)}"
        if code != FINISHED:
            self._site.journal.say(end)
        self._look_for_tracebacks(printed, end)
        self._expect_stop(code)
        if not self._outcomes.note_end(code, printed):
            self._fail("only faults end a run", end)

    def _look_for_tracebacks(self, printed: str, end: str) -> None:
        """Note those of a run that has ended, whichever of its processes printed them."""
        errors, self._read = traceback_errors(printed[self._read :]), len(printed)
        if errors:
            self._note("no traceback is printed", f"{end}; tracebacks: {'; '.join(errors)}")

    def _mend(self) -> bool:
        """Put damage aside as a user would; whether anything was done."""
        if not self._outcomes.damages:
            return False
        self._outcomes.note_mending(find_damage(self._directory))
        done = mend(self._directory, self._terminal)
        self.record.mended += done
        for line in done:
            self._site.journal.say(line)
        self._committed = committed(self._directory)
        return bool(done)

    def _audit(self, twin: Twin) -> None:
        """Prove that nothing was lost, once everything that was away is back."""
        self._site.journal.say(f"campaign {self.record.number} is finished; auditing it")
        self._disturber.undo_all()
        self._site.mlflow.wait()
        # It had been away, or it is told everything again: both must come to the same.
        code, _ = self._run_once(["resume", str(self._directory)], is_disturbed=False)
        self._settle(code)
        checks = audit_folder(self._directory, twin)
        checks += audit_views(self._directory, self._site.mlflow.url)
        code = verify(self._directory, self._terminal)
        faults = (f"it ended with code {code}; see {self._terminal}",) if code else ()
        checks.append(Check("chess-snn verify finds it whole", faults, "the folder"))
        self.record.checks += checks
        for check in checks:
            self._site.journal.say(str(check))

    def _note(self, name: str, fault: str) -> None:
        check = Check(name, (fault,), f"campaign {self.record.number}")
        self.record.checks.append(check)
        self._site.journal.say(str(check))

    def _fail(self, name: str, fault: str) -> None:
        self._note(name, fault)
        raise RoundFailedError(fault)

    def _keep_or_remove(self) -> None:
        """Keep the folder of a campaign that lost something; make room otherwise."""
        if self.record.is_whole:
            shutil.rmtree(self._directory)
            shutil.rmtree(self._scratch)
        elif isinstance(self._site.disk, SmallDisk) and self._directory.exists():
            shutil.move(self._directory, self._home / "campaign")

    def _progress(self) -> str:
        kinds = [path.relative_to(self._directory).parts[0] for path in self._committed]
        counts = {kind: kinds.count(kind) for kind in ("games", "checkpoints", "receipts")}
        return (
            f"campaign {self.record.number} ({self._recipe.name}), run {self.record.runs}: "
            f"{counts['games']} shards, {counts['checkpoints']} generations, "
            f"{counts['receipts']} iterations finished; {len(self.record.faults)} faults"
        )


def _last_line(printed: str) -> str:
    return next((line for line in reversed(printed.split("\n")) if line.strip()), "")
