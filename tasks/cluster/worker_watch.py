"""Reports workers that die, and ends those that freeze, while Dask has their work done again.

The nanny of a worker reports how its process ended: Dask imports this module in the nanny and calls
:func:`dask_setup` (``distributed.nanny.preload``), because the scheduler sees no exit code.

Dask has a time-to-live for workers of its own, measured by the wall clock: if that is put forward,
every worker is suddenly silent, and all are ended. Here silence is added up from one look to the
next, by the monotonic clock, and a look that comes late counts little: a laptop that slept has not
seen its workers freeze.
"""

import contextvars
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from distributed import Client, Nanny
from distributed.core import Status

from chess_snn import processes
from chess_snn.types import LogFn

EXIT_TOPIC: Final = "worker-exit"
"""Dask topic of an event ``{"worker", "exit_code", "oom_kills", "is_over_budget"}`` for each
process of a worker that ended."""

_VMSTAT: Final = Path("/proc/vmstat")
_OOM_KILLS: Final = "oom_kill "

FROZEN_AFTER_S: Final = 60.0
"""On a busy machine a worker may be silent for half of it while it loads kernels."""
LOOK_EVERY_S: Final = 1.0
_LATE: Final = 3.0
"""Most seconds of silence that one look can add, in units of the time between two."""
_RESTART_TIMEOUT_S: Final = 30.0
_JOIN_S: Final = 5.0
_REDONE: Final = "what it was doing is done again"

_logger = logging.getLogger(__name__)


def dask_setup(nanny: Nanny) -> None:
    """Tell of every end of its worker's process while others are to follow."""
    go_on: Callable[[int], None] = nanny._on_worker_exit_sync
    oom_kills, ended_by_nanny = count_oom_kills(), _ended_by(nanny)

    def tell(exit_code: int) -> None:
        nonlocal oom_kills, ended_by_nanny
        kills_before, oom_kills = oom_kills, count_oom_kills()
        ended_before, ended_by_nanny = ended_by_nanny, _ended_by(nanny)
        if nanny.status is Status.running:
            event: dict[str, Any] = {
                "worker": nanny.name, "exit_code": exit_code,
                "oom_kills": oom_kills - kills_before,
                "is_over_budget": ended_by_nanny != ended_before,
            }
            nanny.log_event(EXIT_TOPIC, event)
        go_on(exit_code)

    nanny._on_worker_exit_sync = tell


def _ended_by(nanny: Nanny) -> int:
    """The last process that the nanny ended because it took more memory than its share."""
    pid: int = nanny.memory_manager._last_terminated_pid
    return pid


def count_oom_kills(vmstat: Path = _VMSTAT) -> int:
    """Processes that the kernel has killed for want of memory since the machine started.

    0 where the kernel does not tell, as before Linux 4.13.
    """
    try:
        lines = vmstat.read_text().splitlines()
    except OSError:
        return 0
    found = (line for line in lines if line.startswith(_OOM_KILLS))
    return int(next(found, "oom_kill 0").split()[1])


@dataclass(slots=True)
class _Signs:
    """What is known of the life of one worker process."""

    name: object
    last_seen: float
    """As the scheduler notes it; only whether it changes is of interest."""
    silent_s: float = 0.0


class SilenceLog:
    """How long each worker has been silent, from looks at the scheduler's list of them."""

    def __init__(self, look_every_s: float = LOOK_EVERY_S) -> None:
        self._most_s = _LATE * look_every_s
        self._signs: dict[str, _Signs] = {}
        self._looked_s: float | None = None

    def look(self, workers: Mapping[str, Mapping[str, Any]], now_s: float) -> None:
        """Note what ``workers``, by address, say at ``now_s`` of a monotonic clock."""
        passed_s = 0.0 if self._looked_s is None else min(now_s - self._looked_s, self._most_s)
        self._looked_s = now_s
        signs = {}
        for address, worker in workers.items():
            before = self._signs.get(address)
            if before is None or before.last_seen != worker["last_seen"]:
                signs[address] = _Signs(worker["name"], worker["last_seen"])
            else:
                before.silent_s += passed_s
                signs[address] = before
        self._signs = signs

    def frozen(self, after_s: float) -> dict[str, object]:
        """Names, by address, of the workers that were silent for ``after_s`` seconds."""
        return {
            address: signs.name for address, signs in self._signs.items()
            if signs.silent_s >= after_s
        }


@contextmanager
def watched_workers(
    client: Client, tell: LogFn, frozen_after_s: float = FROZEN_AFTER_S
) -> Iterator[None]:
    """Watch the workers for the length of the block, and ``tell`` what happens to them.

    Args:
        client: of their scheduler.
        tell: called with a line, from several threads; none of them is Dask's.
        frozen_after_s: a worker that says nothing for this long is killed.
    """
    ended, context = threading.Event(), contextvars.copy_context()

    def say(text: str) -> None:
        # In a copy of this context: Prefect keeps the address of its server there.
        context.copy().run(tell, text)

    # Dask handles events in its loop, which may be that of the scheduler and the nannies too.
    exits: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
    client.subscribe_topic(EXIT_TOPIC, lambda event: exits.put(event[1]))

    def tell_exits() -> None:
        while (event := exits.get()) is not None:
            try:
                say(describe_exit(event))
            except Exception:
                _logger.exception("the end of a worker could not be told: %s", event)

    def watch() -> None:
        silence = SilenceLog()
        while not ended.wait(LOOK_EVERY_S):
            try:
                workers = client.scheduler_info(n_workers=-1)["workers"]
                silence.look(workers, time.monotonic())
                for address, name in silence.frozen(frozen_after_s).items():
                    say(
                        f"worker {name} has said nothing for {frozen_after_s:g} s: it is killed, "
                        f"and {_REDONE}"
                    )
                    client.restart_workers(
                        [address], timeout=_RESTART_TIMEOUT_S, raise_for_error=False
                    )
            except Exception as error:  # noqa: BLE001 - a watch that ended would be missed by nobody
                if not ended.is_set():
                    say(f"cannot look after the workers ({error!r}); trying again")

    # Two threads: an end is told while a frozen worker is waited for.
    watcher = threading.Thread(target=watch, name="worker-watch", daemon=True)
    teller = threading.Thread(target=tell_exits, name="worker-exits", daemon=True)
    watcher.start()
    teller.start()
    try:
        yield
    finally:
        ended.set()
        exits.put(None)
        watcher.join(_RESTART_TIMEOUT_S)
        teller.join(_JOIN_S)


def describe_exit(event: Mapping[str, Any]) -> str:
    """One line for people on the end of a worker's process, from an event of ``EXIT_TOPIC``."""
    how = processes.describe_exit(int(event["exit_code"]))
    if event["is_over_budget"]:
        how += " because it took over 95 % of its share of the machine's memory"
    elif event["oom_kills"]:
        how += "; the machine is out of memory, and the kernel ended it or another (oom_kill)"
    return f"worker {event['worker']} {how}; another is started, and {_REDONE}"
