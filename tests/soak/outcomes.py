"""What followed each fault: noted as commits come, runs end, and damage is mended."""

import signal
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .damage import Damage
from .report import FaultRecord
from .schedule import DAMAGE, STOPS, Kind

WENT_ON = "went on"
"""The next thing was committed by the same run, or it had nothing left to commit."""
OVERTAKEN = "the run was ended by another fault first"
NAMED = "the campaign named it and stopped; made again"
FOUND_LATER = "found by the check after the run; made again"
MENDED_BY_ITSELF = "the campaign made it again by itself"
NOTHING_LEFT = "the run had committed everything before"
UNHEEDED = "LOST: the run did not end of it"

FINISHED, ERROR, STOPPED = 0, 2, 130
"""Exit codes of a campaign."""
ENDS_OF_THE_END = frozenset({FINISHED, -signal.SIGINT, -signal.SIGTERM})
"""What a stop signal may come to where everything has been committed, but not before."""

STOPS_WITHIN_S = 60.0
"""Longest time from a stop signal to the end of the run."""
STOPS_WITHOUT_PREFECT_S = 240.0
"""The same where its Prefect server was killed: the campaign waits for it."""

TRACEBACK = "Traceback (most recent call last)"

ENDED_BY = {
    -signal.SIGKILL: frozenset({Kind.KILL_CAMPAIGN}),
    # In the middle of ending, when nobody catches it any more.
    -signal.SIGINT: frozenset({Kind.INTERRUPT_CAMPAIGN}),
    -signal.SIGTERM: frozenset({Kind.TERMINATE_CAMPAIGN}),
    STOPPED: STOPS,
}
"""Exit codes that some faults explain, whatever was printed."""


@dataclass(frozen=True, slots=True)
class ErrorOf:
    """An end with the code ERROR that some faults explain, if the campaign says so."""

    kinds: frozenset[Kind]
    says: tuple[str, ...]
    """One of these is in the line of the error."""
    at_least: int = 1
    """So many of those faults met the run; fewer must be survived."""


ERRORS = (
    ErrorOf(frozenset({Kind.KILL_PREFECT}), ("Prefect server",)),
    # The server's database lies on that disk.
    ErrorOf(frozenset({Kind.FILL_DISK}),
            ("No space left on device", "File too large", "disk is full", "Prefect server")),
    ErrorOf(frozenset({Kind.KILL_MLFLOW}), ("the tracking store",)),
    ErrorOf(frozenset({Kind.KILL_WORKER, Kind.FREEZE_WORKER}),
            ("workers died one after another",), at_least=4),
    # A task is tried again twice (`execution.retries`).
    ErrorOf(frozenset({Kind.KILL_RANK}), ("was killed by SIGKILL",), at_least=3),
)
"""Damage is not among them: an error names its folder."""


@dataclass(slots=True)
class Outcomes:
    """Of the faults of one campaign."""

    damages: list[Damage] = field(default_factory=list)
    """Not mended yet."""
    _of_damage: list[tuple[FaultRecord, Path]] = field(default_factory=list)
    _of_run: list[FaultRecord] = field(default_factory=list)
    """Injected since the run before ended."""
    _carried: list[FaultRecord] = field(default_factory=list)
    """Of the run before, and perhaps not over: MLflow is away, whoever runs the campaign."""
    _waiting: list[FaultRecord] = field(default_factory=list)
    """Nothing was committed since; where it is a stop signal, by no later run."""
    _committed_s: float = 0.0
    """When the last thing was committed."""
    _read: int = 0
    """Characters of the terminal that earlier runs printed."""

    def add(self, fault: FaultRecord, damage: Damage | None = None) -> None:
        """A fault was injected; ``damage`` is what it did to a file."""
        if damage is not None:
            self.damages.append(damage)
            self._of_damage.append((fault, damage.folder))
        self._of_run.append(fault)
        self._waiting.append(fault)

    def note_commit(self, elapsed_s: float) -> None:
        """Something more was committed. That settles no stop signal, of which a run is to end."""
        self._committed_s = elapsed_s
        for fault in self._waiting:
            if _is_open_stop(fault):
                continue
            fault.recovered_s = elapsed_s - fault.elapsed_s
            if not fault.followed and fault.kind not in DAMAGE:
                fault.followed = WENT_ON
        self._waiting = [fault for fault in self._waiting if _is_open_stop(fault)]

    def unheeded_stop(
        self, elapsed_s: float, code: int | None = None, is_finished: bool = False
    ) -> str | None:
        """What is wrong with how the run takes a stop signal; None where nothing is.

        Args:
            elapsed_s: since the soak began.
            code: the run's exit code; None while it is alive.
            is_finished: whether every iteration of the campaign is.
        """
        stops = [fault for fault in self._of_run if _is_open_stop(fault)]
        if not stops:
            return None
        first, within_s = stops[0], self._stops_within_s()
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

    def _stops_within_s(self) -> float:
        kinds = {fault.kind for fault in self._of_run}
        return STOPS_WITHOUT_PREFECT_S if Kind.KILL_PREFECT in kinds else STOPS_WITHIN_S

    def note_end(self, code: int, terminal: str) -> bool:
        """A run has ended; whether a fault explains that.

        Args:
            code: its exit code, negative where a signal ended it.
            terminal: all that the runs of the campaign have printed.
        """
        printed, self._read = terminal[self._read :], len(terminal)
        of_run, self._of_run = self._of_run, []
        candidates = [*(fault for fault, _ in self._of_damage), *self._carried, *of_run]
        self._carried = [fault for fault in of_run if fault.kind is Kind.KILL_MLFLOW]
        named = self._named(printed) if code == ERROR else []
        for fault in named:
            fault.followed = NAMED
        culprit = None if code == FINISHED or named else _culprit(code, printed, candidates)
        if culprit is not None:
            culprit.followed = _ending(code)
        for fault in of_run:
            fault.followed = fault.followed or _after(fault.kind, code)
        return code == FINISHED or bool(named) or culprit is not None

    @property
    def has_met_mlflow(self) -> bool:
        """Whether MLflow was killed in the run that ended last."""
        return bool(self._carried)

    def note_mending(self, damaged: Container[Path]) -> None:
        """All damage is about to be put aside; ``damaged`` are the folders that have some."""
        for fault, folder in self._of_damage:
            is_there = folder in damaged
            fault.followed = fault.followed or (FOUND_LATER if is_there else MENDED_BY_ITSELF)
        self._of_damage.clear()
        self.damages.clear()

    def _named(self, printed: str) -> list[FaultRecord]:
        """Those whose damaged folder the run has named in the error that ended it."""
        error = _last_error(printed)
        return [fault for fault, folder in self._of_damage if _unwrapped(str(folder)) in error]


def _culprit(code: int, printed: str, candidates: Sequence[FaultRecord]) -> FaultRecord | None:
    """The last fault that may have ended a run so."""
    kinds = ENDED_BY.get(code, frozenset())
    if code == ERROR:
        met, error = Counter(fault.kind for fault in candidates), _last_error(printed)
        kinds = frozenset().union(*(
            each.kinds for each in ERRORS
            if sum(met[kind] for kind in each.kinds) >= each.at_least
            and any(_unwrapped(text) in error for text in each.says)
        ))
    return next((fault for fault in reversed(candidates) if fault.kind in kinds), None)


def _is_open_stop(fault: FaultRecord) -> bool:
    return fault.kind in STOPS and not fault.followed


def _after(kind: Kind, code: int) -> str:
    """What followed a fault that met a run of this end, and was not what ended it."""
    if kind in DAMAGE:
        return ""  # that is seen when it is mended
    if kind in STOPS and code == STOPPED:
        return _ending(code)
    if code == FINISHED:
        return NOTHING_LEFT if kind in STOPS else WENT_ON
    return OVERTAKEN


def traceback_errors(printed: str) -> list[str]:
    """The line that each traceback in ``printed`` ends with, each once."""
    found = (_error_below(each) for each in printed.split(TRACEBACK)[1:])
    return list(dict.fromkeys(found))


def _error_below(text: str) -> str:
    """The first line of ``text`` that is not a part of a stack."""
    lines = text.split("\n")[1:]  # the first is the rest of the heading
    stack = (" ", "│", "╰")  # Python's, and the frame of Rich
    return next((line for line in lines if line and not line.startswith(stack)), "cut off")


def _last_error(printed: str) -> str:
    return _unwrapped(printed.rpartition("error:")[2])


def _unwrapped(text: str) -> str:
    """Without white space: lines were wrapped to the terminal's width."""
    return "".join(text.split())


def _ending(code: int) -> str:
    return f"ended ({'signal' if code < 0 else 'code'} {abs(code)}), resumed"
