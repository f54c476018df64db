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
the process is killed; ``raise`` raises :class:`FailpointError`.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

VARIABLE: Final = "CHESS_SNN_FAILPOINTS"
DIRECTORY_VARIABLE: Final = "CHESS_SNN_FAILPOINTS_DIR"

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
    """Do what the environment asks for at ``name``; else nothing."""
    armed = _ARMED.get(name)
    if armed is not None and (mark := _mark_of(name, armed.passing)) is not None:
        _act(name, armed.action, mark)


def _read(text: str) -> dict[str, Armed]:
    """Actions by place, from ``"name=action, name@2=action"``."""
    armed = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        place, action = entry.split("=")
        name, _, passing = place.partition("@")
        if action not in {"kill", "hold", "raise"}:
            raise ValueError(entry)
        armed[name] = Armed(action, int(passing or 1))
    return armed


def _mark_of(name: str, passing: int) -> Path | None:
    """A file that only the ``passing``-th process can make; None for all others."""
    for number in range(1, passing + 1):
        is_meant = number == passing
        mark = Path(os.environ[DIRECTORY_VARIABLE], name if is_meant else f"{name}@{number}")
        try:
            with mark.open("x") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            continue
        return mark if is_meant else None
    return None


def _act(name: str, action: str, mark: Path) -> None:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "raise":
        raise FailpointError(f"the environment asked for a fault at {name}")
    else:
        while mark.exists():
            time.sleep(_POLL_S)


_ARMED: Final = _read(os.environ.get(VARIABLE, ""))
