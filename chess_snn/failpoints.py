"""Named places where a test makes a process die, wait or fail, at the very instant that matters.

A place is ``failpoint("shard.sealed")``; it does nothing unless the environment asks for it::

    CHESS_SNN_FAILPOINTS="shard.sealed=kill, receipt.committed=hold"
    CHESS_SNN_FAILPOINTS_DIR=/tmp/fired

Each place fires once for all processes that share the folder: the first process there makes a file
with the place's name, which holds its process id. So a restarted worker gets past the
place that killed the one before, and a test sees that the place was met. ``shard.sealed@2=kill`` is
the second to come there; who came before has left a file ``shard.sealed@1``. A campaign warms up
with a shard of its own, and commits generation 0 before it plays. None lies where games are played
or steps are made.

``kill`` is kill -9 of the process that came there; ``hold`` waits until the file is gone or
the process is killed; ``raise`` raises :class:`FailpointError`; ``sleep:3`` sleeps for 3 s.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.errors import UsageError

VARIABLE: Final = "CHESS_SNN_FAILPOINTS"
DIRECTORY_VARIABLE: Final = "CHESS_SNN_FAILPOINTS_DIR"

FAILPOINTS: Final = {
    "file.written": "a single file, such as a receipt, is whole and has its temporary name",
    "checkpoint.staged": "a checkpoint's files are on the disk, its manifest is not",
    "checkpoint.sealed": "a checkpoint has its manifest and not yet its name",
    "checkpoint.renamed": "a checkpoint has its name, and its parent is not synced",
    "plan.committed": "an iteration has its plan, and nothing else",
    "shard.played": "a shard's games are played, and nothing of them is written",
    "shard.staged": "a shard's files are on the disk, its manifest is not",
    "shard.sealed": "a shard has its manifest and not yet its name",
    "shard.renamed": "a shard has its name, and its parent is not synced",
    "training.begins": "the window is read, and no step is made",
    "training.done": "a generation is trained, and nothing of it is written",
    "training.committed": "a generation is committed, and not yet reported",
    "conversion.played": "won positions are played out, and nothing of it is written",
    "match.played": "a part of a match is played, and nothing of it is written",
    "match.joined": "a match is there whole, and its parts are still beside it",
    "receipt.begins": "everything of an iteration is there but its receipt",
    "receipt.committed": "an iteration has its receipt, and MLflow does not know",
    "mlflow.recorded": "MLflow knows, and the campaign has not noticed",
    "campaign.stopping": "the campaign is stopping, and its tasks are not yet",
}
"""Every place, and how things stand there."""

ACTIONS: Final = "kill, hold, raise or sleep:SECONDS"

_POLL_S: Final = 0.02


class FailpointError(RuntimeError):
    """A fault that nothing expects, raised by ``raise``."""


@dataclass(frozen=True, slots=True)
class Armed:
    """An action at a place."""

    action: str
    passing: int = 1
    """Fires at this visit, counted from 1."""


def failpoint(name: str) -> None:
    """Do what the environment asks for at ``name``, one of ``FAILPOINTS``; else nothing."""
    armed = _ARMED.get(name)
    if armed is not None and (mark := _mark_of(name, armed.passing)) is not None:
        _act(name, armed.action, mark)


def read_failpoints(text: str) -> dict[str, Armed]:
    """Actions by place, from ``"name=action, name@2=action"``.

    Raises:
        UsageError: a place or an action is unknown, or a passing is not a number from 1.
    """
    armed = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        place, _, action = entry.partition("=")
        name, at, passing = place.partition("@")
        if name not in FAILPOINTS:
            raise UsageError(f"{VARIABLE} names {name!r}; known: {', '.join(FAILPOINTS)}")
        if at and not (passing.isdecimal() and int(passing)):
            raise UsageError(f"{VARIABLE} has {entry!r}; after @ comes a number from 1")
        kind, _, seconds = action.partition(":")
        is_known = _is_number(seconds) if kind == "sleep" else action in {"kill", "hold", "raise"}
        if not is_known:
            raise UsageError(f"{VARIABLE} has {entry!r}; an action is {ACTIONS}")
        armed[name] = Armed(action, int(passing or 1))
    return armed


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _mark_of(name: str, passing: int) -> Path | None:
    """A file that only the ``passing``-th process can make; None for all others."""
    folder = os.environ.get(DIRECTORY_VARIABLE)
    if not folder:
        raise UsageError(f"{VARIABLE} is set, and {DIRECTORY_VARIABLE} is not; name a folder there")
    for number in range(1, passing + 1):
        is_meant = number == passing
        mark = Path(folder, name if is_meant else f"{name}@{number}")
        try:
            with mark.open("x") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            continue
        return mark if is_meant else None
    return None


def _act(name: str, action: str, mark: Path) -> None:
    kind, _, seconds = action.partition(":")
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "raise":
        raise FailpointError(f"the environment asked for a fault at {name}")
    elif kind == "sleep":
        time.sleep(float(seconds))
    else:
        while mark.exists():
            time.sleep(_POLL_S)


_ARMED: Final = read_failpoints(os.environ.get(VARIABLE, ""))
