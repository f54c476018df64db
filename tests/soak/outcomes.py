"""What followed each fault; and whether a fault explains how a run ended."""

import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .faults import DAMAGE, STOPS, Kind
from .report import FaultRecord

WENT_ON = "the run went on"
OVERTAKEN = "the run was ended otherwise"
REPAIRED = "repaired after the run"
UNHEEDED = "LOST: the run did not end"

FINISHED, ERROR, STOPPED = 0, 2, 130
"""Exit codes of a campaign."""
ENDS_OF_THE_END = frozenset({FINISHED, -signal.SIGINT, -signal.SIGTERM})
"""Ends after a stop signal that are right only if everything had been committed before."""

STOPS_WITHIN_S = 60.0
"""Longest time from a stop signal to the end of the run."""
STOPS_WITHOUT_PREFECT_S = 240.0
"""The same if its Prefect server was killed: the campaign waits for it."""

TRACEBACK = "Traceback (most recent call last)"

ENDED_BY = {
    -signal.SIGKILL: frozenset({Kind.KILL_CAMPAIGN}),
    # In the middle of ending, when it is no longer caught.
    -signal.SIGINT: frozenset({Kind.INTERRUPT_CAMPAIGN}),
    -signal.SIGTERM: frozenset({Kind.TERMINATE_CAMPAIGN}),
    STOPPED: STOPS,
}
"""Exit codes that some faults explain, whatever was printed."""

ERRORS = (
    (1, {Kind.KILL_PREFECT}, ("Prefect server",)),
    # The server's database lies on that disk.
    (1, {Kind.FILL_DISK}, ("No space left on device", "disk is full", "Prefect server")),
    (1, {Kind.KILL_MLFLOW}, ("the tracking store",)),
    (4, {Kind.KILL_WORKER, Kind.FREEZE_WORKER}, ("workers died one after another",)),
    # A task is tried again twice (`execution.retries`).
    (3, {Kind.KILL_RANK}, ("was killed by SIGKILL",)),
)
"""Ends with the code ERROR: so many faults of these kinds explain an error with one of these texts.
Damage explains an error that names the damaged artifact."""


@dataclass(slots=True)
class Outcomes:
    """Of the faults of one campaign."""

    damaged: dict[Path, FaultRecord] = field(default_factory=dict)
    """Not repaired yet."""
    _of_run: list[FaultRecord] = field(default_factory=list)
    """Injected since the run before ended."""
    _carried: list[FaultRecord] = field(default_factory=list)
    """Of the run before, and perhaps not over: MLflow is away whichever run goes on."""
    _waiting: list[FaultRecord] = field(default_factory=list)
    """Nothing was committed since; after a stop signal, by no later run."""
    _committed_s: float = 0.0
    _read: int = 0
    """Characters of the terminal that earlier runs printed."""

    def add(self, fault: FaultRecord, damaged: Path | None = None) -> None:
        if damaged is not None:
            self.damaged[damaged] = fault
        self._of_run.append(fault)
        self._waiting.append(fault)

    def note_commit(self, elapsed_s: float) -> None:
        """Something was committed. A stop signal is not over until the run has ended."""
        self._committed_s = elapsed_s
        for fault in self._waiting:
            if not _is_open_stop(fault):
                fault.recovered_s = elapsed_s - fault.elapsed_s
                if fault.kind not in DAMAGE:
                    fault.followed = fault.followed or WENT_ON
        self._waiting = [fault for fault in self._waiting if _is_open_stop(fault)]

    def unheeded_stop(
        self, elapsed_s: float, code: int | None = None, is_finished: bool = False
    ) -> str | None:
        """What is wrong with how the run reacts to a stop signal; None if nothing is.

        Args:
            elapsed_s: since the soak began.
            code: the run's exit code; None while it is alive.
            is_finished: whether every iteration of the campaign is.
        """
        stops = [fault for fault in self._of_run if _is_open_stop(fault)]
        if not stops:
            return None
        first, is_late = stops[0], any(f.kind is Kind.KILL_PREFECT for f in self._of_run)
        within_s = STOPS_WITHOUT_PREFECT_S if is_late else STOPS_WITHIN_S
        had_finished = is_finished and self._committed_s <= first.elapsed_s
        if code is None and elapsed_s - first.elapsed_s > within_s:
            wrong = f"{within_s:.0f} s later the run is alive"
        elif code in ENDS_OF_THE_END and not had_finished:
            wrong = f"the run ended with code {code}, not {STOPPED}"
        else:
            return None
        for fault in stops:
            fault.followed = UNHEEDED
        return f"{first.kind} (fault {first.number}): {wrong}"

    def note_end(self, code: int, terminal: str) -> bool:
        """A run has ended; whether a fault explains that.

        Args:
            code: its exit code, negative if a signal ended it.
            terminal: all that the runs of the campaign have printed.
        """
        printed, self._read = terminal[self._read :], len(terminal)
        of_run, self._of_run = self._of_run, []
        candidates = [*self.damaged.values(), *self._carried, *of_run]
        self._carried = [fault for fault in of_run if fault.kind is Kind.KILL_MLFLOW]
        culprits = [] if code == FINISHED else self._culprits(code, printed, candidates)
        for fault in culprits:
            fault.followed = f"ended ({'signal' if code < 0 else 'code'} {abs(code)}), resumed"
        for fault in of_run:
            if fault.kind not in DAMAGE:
                fault.followed = fault.followed or (WENT_ON if code == FINISHED else OVERTAKEN)
        return code == FINISHED or bool(culprits)

    @property
    def has_met_mlflow(self) -> bool:
        """Whether MLflow was killed in the run that ended last."""
        return bool(self._carried)

    def note_repair(self) -> None:
        """All damage is about to be repaired."""
        for fault in self.damaged.values():
            fault.followed = fault.followed or REPAIRED
        self.damaged.clear()

    def _culprits(
        self, code: int, printed: str, candidates: Sequence[FaultRecord]
    ) -> list[FaultRecord]:
        """The faults that explain this end: damage that is named, all stops, or the last one."""
        kinds = ENDED_BY.get(code, frozenset())
        if code == ERROR:
            # Without white space: lines are wrapped to the terminal's width.
            error = _unwrapped(printed.rpartition("error:")[2])
            named = [f for path, f in self.damaged.items() if _unwrapped(str(path)) in error]
            if named:
                return named
            met = Counter(fault.kind for fault in candidates)
            kinds = frozenset().union(*(
                kinds for at_least, kinds, texts in ERRORS
                if sum(met[kind] for kind in kinds) >= at_least
                and any(_unwrapped(text) in error for text in texts)
            ))
        found = [fault for fault in candidates if fault.kind in kinds]
        return found if code == STOPPED else found[-1:]


def _is_open_stop(fault: FaultRecord) -> bool:
    return fault.kind in STOPS and not fault.followed


def traceback_errors(printed: str) -> list[str]:
    """The line that each traceback in ``printed`` ends with, each once."""
    found = (_error_below(each) for each in printed.split(TRACEBACK)[1:])
    return list(dict.fromkeys(found))


def _error_below(text: str) -> str:
    """The first line of ``text`` that is not a part of a stack."""
    lines = text.split("\n")[1:]  # the first is the rest of the heading
    stack = (" ", "│", "╰")  # Python's, and the frame of Rich
    return next((line for line in lines if line and not line.startswith(stack)), "cut off")


def _unwrapped(text: str) -> str:
    return "".join(text.split())
