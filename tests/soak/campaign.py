"""One campaign of a soak: disturbed, resumed as a user would, and audited when it is finished."""

import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .audit import audit, repair
from .faults import STOPS, Disturber, Injected, Kind, PlannedFault, Scene
from .processes import MARK, MlflowServer, RunningCampaign, end_all, wait_until_gone
from .report import CampaignRecord, Check, FaultRecord, Journal

POLL_S = 0.25
GONE_S = 60.0
"""Longest wait for the processes of a run to be gone after it; 5 s are promised, on an idle
machine."""
STUCK_S = 900.0
"""Without a commit for this long, a campaign hangs."""
STOPS_WITHIN_S = 60.0
"""Longest time from a stop signal to the end of the run."""
STOPS_WITHOUT_PREFECT_S = 240.0
"""The same if its Prefect server was killed: the campaign waits for it."""

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

FINISHED, ERROR, STOPPED = 0, 2, 130
"""Exit codes of a campaign."""
ENDED_BY = {
    -signal.SIGKILL: {Kind.KILL_CAMPAIGN},
    # It comes in the middle of ending, when it is no longer caught.
    -signal.SIGINT: {Kind.INTERRUPT_CAMPAIGN}, -signal.SIGTERM: {Kind.TERMINATE_CAMPAIGN},
    STOPPED: STOPS,
}
"""Exit codes that some faults explain, whatever was printed."""
ERRORS = (
    (1, {Kind.KILL_PREFECT}, ("Prefect server",)),
    # The server's database lies on that disk.
    (1, {Kind.FILL_DISK}, ("No space left on device", "disk is full", "Prefect server")),
    (1, {Kind.KILL_MLFLOW}, ("the tracking store",)),
    (4, {Kind.KILL_WORKER, Kind.FREEZE_WORKER}, ("workers died one after another",)),
    # A task is tried again twice (`RETRIES` in tasks/compute.py).
    (3, {Kind.KILL_RANK}, ("was killed by SIGKILL",)),
)
"""Ends with the code ERROR: so many faults of these kinds explain an error with one of these texts.
Damage explains an error that names the damaged artifact."""


def is_explained(
    code: int, printed: str, faults: Mapping[Kind, int], damaged: Collection[Path] = ()
) -> bool:
    """Whether faults explain how a run ended.

    Args:
        code: its exit code, negative if a signal ended it.
        printed: what it printed.
        faults: how many of each kind it met.
        damaged: artifacts that are damaged.
    """
    if code != ERROR:
        return code == FINISHED or any(faults.get(kind) for kind in ENDED_BY.get(code, ()))
    # Without white space: lines are wrapped to the terminal's width.
    error = _unwrapped(printed.rpartition("error:")[2])
    return any(_unwrapped(str(path)) in error for path in damaged) or any(
        sum(faults.get(kind, 0) for kind in kinds) >= at_least
        and any(_unwrapped(text) in error for text in texts)
        for at_least, kinds, texts in ERRORS
    )


def _unwrapped(text: str) -> str:
    return "".join(text.split())


def start_arguments(directory: Path, recipe: str, seed: int) -> list[str]:
    """Arguments of ``chess-snn campaign``."""
    settings = [*SETTINGS, f"campaign.seed={seed}", f"execution.training_ranks={RANKS[recipe]}"]
    return ["start", "--dir", str(directory), *(f"--set={setting}" for setting in settings)]


class LostError(Exception):
    """The campaign cannot be finished; its record has the failed check."""


@dataclass(frozen=True, slots=True)
class Site:
    """Things that the campaigns of a soak share."""

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
        self._site, self._is_over = site, is_over
        name = f"campaign-{record.number:03d}"
        self._directory, self._home = site.disk / name, site.out / name
        self._scratch, self._terminal = self._home / "tmp", self._home / "terminal.log"
        self._disturber = Disturber(planned, self._note_fault)
        self._faults = Counter[Kind]()
        """Faults of this run; MLflow is away whichever run goes on."""
        self._damaged: set[Path] = set()
        """And not repaired yet."""
        self._stop: tuple[float, bool] | None = None
        """When this run was told to stop, and whether every iteration was finished then."""
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
            self._disturber.undo(all_of_them=True)
            end_all(self._site.mark)
        if self.record.is_whole:
            shutil.rmtree(self._directory)
            shutil.rmtree(self._scratch)
        elif self._directory.exists():
            shutil.move(self._directory, self._home / "campaign")

    def _finish(self, arguments: list[str]) -> None:
        while True:
            code = self._run_once(arguments)
            # A user whose campaign was killed resumes it; who reads of damage repairs it first.
            has_repaired = code in (FINISHED, ERROR) and self._repair()
            if code == FINISHED and not has_repaired:
                return
            if code == ERROR:
                self._wait_for_mlflow()  # a finished campaign cannot be recorded without it
            arguments = ["resume", str(self._directory)]

    def _run_once(self, arguments: Sequence[str], is_disturbed: bool = True) -> int:
        """One run to its end, which faults may cause; its exit code."""
        campaign = RunningCampaign(arguments, self._terminal, {
            MARK: self._site.mark, "TMPDIR": str(self._scratch),
            "MLFLOW_TRACKING_URI": self._site.mlflow.url,
        })
        self.record.runs += 1
        self._faults = Counter({Kind.KILL_MLFLOW: self._faults[Kind.KILL_MLFLOW]})
        self._stop, self._last_commit_s = None, time.monotonic()
        self._disturber.begin_run()
        while (code := campaign.exit_code()) is None:
            self._expect_stop()
            self._note_commits()
            self._disturber.undo()
            if is_disturbed and not self._is_over():
                self._disturber.disturb(Scene(
                    self._directory, campaign, self._site.mlflow,
                    self._site.disk if self._site.has_disk else None, frozenset(self._damaged),
                ))
            if time.monotonic() - self._last_commit_s > STUCK_S:
                self._fail("it goes on", f"nothing was committed for {STUCK_S:.0f} s")
            self._site.journal.progress(
                f"campaign {self.record.number} ({self.record.recipe}), run {self.record.runs}: "
                f"{len(self._committed)} artifacts, {len(self.record.faults)} faults"
            )
            time.sleep(POLL_S)
        self._note_commits()
        self._settle(code)
        return code

    def _note_fault(self, kind: Kind, injected: Injected) -> None:
        elapsed_s = self._site.journal.elapsed_s
        self.record.faults.append(FaultRecord(kind, injected.target, self.record.runs, elapsed_s))
        self._faults[kind] += 1
        if injected.damaged is not None:
            self._damaged.add(injected.damaged)
        if kind in STOPS and self._stop is None:
            is_finished = len(list(self._directory.glob(COMMITTED[3]))) == ITERATIONS
            self._stop = elapsed_s, is_finished
        self._site.journal.say(f"FAULT {kind}: {injected.target}")

    def _expect_stop(self, code: int | None = None) -> None:
        """Fail unless a stop signal ends the run; ``code`` is None while it is alive."""
        if self._stop is None:
            return
        sent_s, had_finished = self._stop
        within_s = STOPS_WITHOUT_PREFECT_S if self._faults[Kind.KILL_PREFECT] else STOPS_WITHIN_S
        if code is None and self._site.journal.elapsed_s - sent_s > within_s:
            self._fail("a stop signal ends a run", f"it is alive {within_s:.0f} s later")
        # A second signal may come when the program has said that it stopped, and catches none.
        caught_one = sum(self._faults[kind] for kind in STOPS) > 1
        is_uncaught = code in (-signal.SIGINT, -signal.SIGTERM) and not caught_one
        if (code == FINISHED or is_uncaught) and not had_finished:
            self._fail("a stop signal ends a run", f"it ended with code {code}, not {STOPPED}")

    def _note_commits(self) -> None:
        now = frozenset(path for pattern in COMMITTED for path in self._directory.glob(pattern))
        if now - self._committed:
            self._last_commit_s = time.monotonic()
        self._committed = now

    def _settle(self, code: int) -> None:
        """Check what a run that has ended left behind, and why it ended."""
        self._disturber.undo(of_run=True)
        left = wait_until_gone(self._site.mark, GONE_S)
        if left:
            self._fail("no process is left", str(left))
        text = self._terminal.read_text(errors="replace")
        printed, self._read = text[self._read :], len(text)
        last_line = next((line for line in printed.split("\n")[::-1] if line.strip()), "")
        end = f"run {self.record.runs} ended with code {code}: {last_line}"
        if code != FINISHED:
            self.record.ends.append(end)
            self._site.journal.say(end)
        if "Traceback (most recent call last)" in printed:
            self._note(Check("no traceback is printed", f"{end}; see {self._terminal}"))
        self._expect_stop(code)
        if not is_explained(code, printed, self._faults, self._damaged):
            self._fail("only faults end a run", end)

    def _repair(self) -> bool:
        """Repair damage as a user would; whether anything was done."""
        if not self._damaged:
            return False
        self._damaged.clear()
        done = repair(self._directory, self._terminal)
        self.record.repaired += done
        for line in done:
            self._site.journal.say(line)
        self._note_commits()
        return bool(done)

    def _wait_for_mlflow(self) -> None:
        self._site.mlflow.wait()
        self._faults[Kind.KILL_MLFLOW] = 0

    def _audit(self, reference: Path) -> None:
        """Prove that nothing was lost, once everything that was away is back."""
        self._site.journal.say(f"campaign {self.record.number} is finished; auditing it")
        self._disturber.undo(all_of_them=True)
        self._wait_for_mlflow()
        # It had been away, or it is told everything again: both must give the same.
        self._run_once(["resume", str(self._directory)], is_disturbed=False)
        for check in audit(self._directory, reference, self._site.mlflow.url, self._terminal):
            self._note(check)

    def _note(self, check: Check) -> None:
        self.record.checks.append(check)
        self._site.journal.say(check)

    def _fail(self, name: str, fault: str) -> None:
        self._note(Check(name, f"run {self.record.runs}: {fault}"))
        raise LostError(fault)
