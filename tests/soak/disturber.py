"""Whoever disturbs a campaign: injects each planned fault when it is due, undoes it in time."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .injections import Injected, Scene, inject
from .schedule import Kind, PlannedFault

LOOK_FOR_WORKERS_S = 1.0
NO_TARGET_S = 30.0
"""How long a fault waits for somebody it can meet; then it is left out."""


@dataclass(frozen=True, slots=True)
class _Hold:
    """A fault that is undone by and by."""

    kind: Kind
    due_s: float
    undo: Callable[[], None]


class Disturber:
    """Of one campaign, over all its runs."""

    def __init__(
        self, planned: Iterator[PlannedFault], is_over: Callable[[], bool],
        on_fault: Callable[[Kind, Injected], None], tell: Callable[[str], None],
    ) -> None:
        """Disturb by ``planned`` until ``is_over()``.

        Args:
            planned: the faults to come.
            is_over: whether no fault is to follow.
            on_fault: called with each that was injected.
            tell: called with a line for people.
        """
        self._planned = planned
        self._is_over = is_over
        self._on_fault = on_fault
        self._tell = tell
        self._next: PlannedFault | None = None
        self._due_s: float | None = None  # not before the campaign is at work
        self._next_look_s = 0.0
        self._between_runs: list[PlannedFault] = []
        self._holds: list[_Hold] = []

    def begin_run(self) -> None:
        """The campaign was started or resumed: faults wait until its workers are there."""
        self._due_s = None

    def disturb(self, scene: Scene) -> None:
        """Inject what is due; call this often while the campaign runs."""
        if self._is_over():
            return
        planned, now = self._upcoming(), time.monotonic()
        if self._due_s is None:
            if self._is_at_work(scene, now):
                self._due_s = now + planned.wait_s
        elif now >= self._due_s:
            if self._inject(planned, scene):
                self._next, self._due_s = None, now + self._upcoming().wait_s
            elif now > self._due_s + NO_TARGET_S:
                self._tell(f"left out: {planned.kind}; there was none for {NO_TARGET_S:.0f} s")
                self._next, self._due_s = None, now

    def disturb_between_runs(self, scene: Scene) -> None:
        """Inject what waits until the campaign does not run."""
        if self._is_over():
            self._between_runs.clear()
        self._between_runs = [p for p in self._between_runs if not self._inject(p, scene)]

    def undo_what_is_due(self) -> None:
        """End the faults that have lasted as long as planned."""
        self._undo(lambda hold: time.monotonic() >= hold.due_s)

    def undo_of_run(self) -> None:
        """End what befell the processes of a run that has ended, and its disk; MLflow stays."""
        self._undo(lambda hold: hold.kind is not Kind.KILL_MLFLOW)

    def undo_all(self) -> None:
        """End everything."""
        self._undo(lambda _: True)

    def _undo(self, is_meant: Callable[[_Hold], bool]) -> None:
        for hold in [hold for hold in self._holds if is_meant(hold)]:
            self._holds.remove(hold)
            hold.undo()

    def _is_at_work(self, scene: Scene, now: float) -> bool:
        if now < self._next_look_s:
            return False
        self._next_look_s = now + LOOK_FOR_WORKERS_S
        return bool(scene.campaign.workers())

    def _upcoming(self) -> PlannedFault:
        """The next fault that does not wait for the end of a run."""
        while self._next is None:
            planned = next(self._planned)
            if planned.is_between_runs:
                self._between_runs.append(planned)
            else:
                self._next = planned
        return self._next

    def _inject(self, planned: PlannedFault, scene: Scene) -> bool:
        """Do it; whether there was somebody to do it to."""
        injected = inject(planned, scene)
        if injected is None:
            return False
        if injected.undo is not None:
            due_s = time.monotonic() + planned.hold_s
            self._holds.append(_Hold(planned.kind, due_s, injected.undo))
        self._on_fault(planned.kind, injected)
        return True
