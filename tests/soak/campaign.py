"""One campaign of a soak: disturbed, resumed as a user would, and audited when it is finished."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from .audit import audit, repair
from .faults import Disturber, Injected, Kind, PlannedFault, Scene
from .outcomes import ERROR, FINISHED, Outcomes, traceback_errors
from .processes import MARK, MlflowServer, RunningCampaign, end_all, wait_until_gone
from .report import CampaignRecord, Check, FaultRecord, Journal

POLL_S = 0.25
GONE_S = 60.0
"""Longest wait for the processes of a run to be gone after it; 5 s are promised, on an idle
machine."""
STUCK_S = 900.0
"""Without a commit for this long, a campaign hangs."""

ITERATIONS = 3
COMMITTED = ("games/iter-*/shard-*", "checkpoints/gen-*", "matches/*/*.json", "receipts/*.json")
"""Everything that a campaign has committed."""
SETTINGS = (
    f"campaign.iterations={ITERATIONS}", "net.size=tiny",
    "self_play.games_per_iteration=32", "self_play.games_per_shard=8",
    "self_play.max_plies_first=40", "self_play.max_plies_last=40",
    "search.simulations_first=4", "search.simulations_last=4",
    "training.batch_size=64", "training.micro_batch=32", "training.presentations=3.0",
    'evaluation.opponents=["random"]', "evaluation.num_openings=4", "evaluation.max_plies=30",
    "evaluation.won_positions=4", "promotion.max_openings=4", "promotion.openings_each=2",
    "execution.workers=2", "execution.device=cpu",
)
RANKS = {"workers": 0, "ranks": 2}
"""The two kinds of campaigns, by `execution.training_ranks`. Campaigns of one kind and seed have
the same games and weights, whatever happens to them."""


def start_arguments(directory: Path, recipe: str, seed: int) -> list[str]:
    """Of ``chess-snn campaign``."""
    settings = [*SETTINGS, f"campaign.seed={seed}", f"execution.training_ranks={RANKS[recipe]}"]
    return ["start", "--dir", str(directory), *(f"--set={setting}" for setting in settings)]


class LostError(Exception):
    """The campaign cannot be finished; its record has the failed check."""


@dataclass(frozen=True, slots=True)
class Site:
    """What the campaigns of a soak share."""

    out: Path
    journal: Journal
    disk: Path
    has_disk: bool
    """Whether the disk can be filled."""
    mlflow: MlflowServer
    mark: str
    """Value of :data:`processes.MARK` in every process of theirs."""


class DisturbedCampaign:
    """The campaign of ``record``, under the ``planned`` faults until ``is_over()``."""

    def __init__(
        self, site: Site, record: CampaignRecord, planned: Iterator[PlannedFault],
        is_over: Callable[[], bool],
    ) -> None:
        self.record = record
        self._site = site
        name = f"campaign-{record.number:03d}"
        self._directory, self._home = site.disk / name, site.out / name
        self._scratch, self._terminal = self._home / "tmp", self._home / "terminal.log"
        self._outcomes = Outcomes()
        self._disturber = Disturber(planned, is_over, self._note_fault, site.journal.say)
        self._committed: frozenset[Path] = frozenset()
        self._last_commit_s = 0.0
        self._read = 0
        """Characters of the terminal that earlier runs printed."""

    def run(self, seed: int, reference: Path) -> None:
        """Start, disturb, resume until it is finished; then audit it against its reference."""
        self._scratch.mkdir(parents=True)
        try:
            self._finish(start_arguments(self._directory, self.record.recipe, seed))
            self._audit(reference)
        except LostError:
            self._site.journal.say(f"campaign {self.record.number} is given up")
        finally:
            self._disturber.undo_all()
            end_all(self._site.mark)
            self.record.ended_s = self._site.journal.elapsed_s
        if self.record.is_whole:
            shutil.rmtree(self._directory)
            shutil.rmtree(self._scratch)
        elif self._directory.exists():
            shutil.move(self._directory, self._home / "campaign")

    def _finish(self, arguments: list[str]) -> None:
        while True:
            code, scene = self._run_once(arguments)
            self._settle(code)
            self._disturber.disturb_between_runs(scene)
            # A user whose campaign was killed resumes it; who reads of damage repairs it first.
            has_repaired = code in (FINISHED, ERROR) and self._repair()
            if code == FINISHED and not has_repaired:
                return
            if code == ERROR and self._outcomes.has_met_mlflow:
                self._site.mlflow.wait()  # a finished campaign cannot be recorded without it
            arguments = ["resume", str(self._directory)]

    def _run_once(
        self, arguments: Sequence[str], is_disturbed: bool = True
    ) -> tuple[int, Scene]:
        """One run to its end, which faults may cause; its exit code."""
        campaign = RunningCampaign(arguments, self._terminal, {
            MARK: self._site.mark, "TMPDIR": str(self._scratch),
            "MLFLOW_TRACKING_URI": self._site.mlflow.url,
        })
        self.record.runs += 1
        self._disturber.begin_run()
        self._last_commit_s = time.monotonic()
        while (code := campaign.exit_code()) is None:
            self._expect_stop()
            self._note_commits()
            self._disturber.undo_what_is_due()
            if is_disturbed:
                self._disturber.disturb(self._scene(campaign))
            if time.monotonic() - self._last_commit_s > STUCK_S:
                self._fail("it goes on", f"nothing was committed for {STUCK_S:.0f} s")
            self._site.journal.progress(self._progress())
            time.sleep(POLL_S)
        self._note_commits()
        return code, self._scene(campaign)

    def _scene(self, campaign: RunningCampaign) -> Scene:
        return Scene(
            self._directory, campaign, self._site.mlflow,
            self._site.disk if self._site.has_disk else None, frozenset(self._outcomes.damaged),
        )

    def _expect_stop(self, code: int | None = None) -> None:
        """Fail unless a stop signal ends the run; ``code`` is None while it is alive."""
        is_finished = len(list(self._directory.glob(COMMITTED[3]))) == ITERATIONS
        wrong = self._outcomes.unheeded_stop(self._site.journal.elapsed_s, code, is_finished)
        if wrong is not None:
            self._fail("a stop signal ends a run", f"run {self.record.runs}: {wrong}")

    def _note_fault(self, kind: Kind, injected: Injected) -> None:
        fault = FaultRecord(
            len(self.record.faults), kind, injected.target,
            datetime.now(UTC).isoformat(timespec="seconds"), self._site.journal.elapsed_s,
        )
        self.record.faults.append(fault)
        self._outcomes.add(fault, injected.damaged)
        self._site.journal.say(
            f"FAULT {self.record.number}.{fault.number}  {kind}: {injected.target}"
        )

    def _note_commits(self) -> None:
        now = frozenset(path for pattern in COMMITTED for path in self._directory.glob(pattern))
        if now - self._committed:
            self._last_commit_s = time.monotonic()
            self._outcomes.note_commit(self._site.journal.elapsed_s)
        self._committed = now

    def _settle(self, code: int) -> None:
        """Check what a run that has ended left behind, and why it ended."""
        self._disturber.undo_of_run()
        left = wait_until_gone(self._site.mark, GONE_S)
        if left:
            self._fail("no process is left", str(left))
        printed = self._terminal.read_text(errors="replace")
        last_line = next((line for line in printed.split("\n")[::-1] if line.strip()), "")
        end = f"run {self.record.runs} ended with code {code}: {last_line}"
        if code != FINISHED:
            self._site.journal.say(end)
        errors, self._read = traceback_errors(printed[self._read :]), len(printed)
        if errors:
            self._note(Check("no traceback is printed", f"{end}; {'; '.join(errors)}"))
        self._expect_stop(code)
        if not self._outcomes.note_end(code, printed):
            self._fail("only faults end a run", end)

    def _repair(self) -> bool:
        """Repair damage as a user would; whether anything was done."""
        if not self._outcomes.damaged:
            return False
        self._outcomes.note_repair()
        done = repair(self._directory, self._terminal)
        self.record.repaired += done
        for line in done:
            self._site.journal.say(line)
        self._note_commits()
        return bool(done)

    def _audit(self, reference: Path) -> None:
        """Prove that nothing was lost, once everything that was away is back."""
        self._site.journal.say(f"campaign {self.record.number} is finished; auditing it")
        self._disturber.undo_all()
        self._site.mlflow.wait()
        # It had been away, or it is told everything again: both must give the same.
        code, _ = self._run_once(["resume", str(self._directory)], is_disturbed=False)
        self._settle(code)
        for check in audit(self._directory, reference, self._site.mlflow.url, self._terminal):
            self._note(check)

    def _note(self, check: Check) -> None:
        self.record.checks.append(check)
        self._site.journal.say(str(check))

    def _fail(self, name: str, fault: str) -> None:
        self._note(Check(name, fault))
        raise LostError(fault)

    def _progress(self) -> str:
        kinds = [path.relative_to(self._directory).parts[0] for path in self._committed]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
        return (
            f"campaign {self.record.number} ({self.record.recipe}), run {self.record.runs}: "
            f"{counts}; {len(self.record.faults)} faults"
        )
