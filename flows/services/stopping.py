"""Ends the services, whoever started them and whatever became of that process."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from flows.child_record import reap_stale
from flows.services.record import find_running, remove_record
from flows.services.specs import RECORDS, WORKER_GRACE_S

STOP_TIMEOUT_S: Final = WORKER_GRACE_S + 45.0
"""What the supervisor has: the worker's grace, and some for the servers after it."""

_KILL_TIMEOUT_S: Final = 10.0


def stop_services(directory: Path, on_wait: Callable[[float], None]) -> bool:
    """End the supervisor and its services; those of one that was killed too.

    A process is touched only if both its pid and its start are the recorded ones.

    Args:
        directory: of the services.
        on_wait: called with the seconds waited so far.

    Returns:
        Whether there was anything to end.

    Raises:
        UsageError: they run on another machine.
    """
    record = find_running(directory)
    supervisor = None if record is None else record.supervisor
    if supervisor is not None:
        _end(supervisor, on_wait)
    orphaned = [directory / name for name in RECORDS if (directory / name).exists()]
    for record_file in reversed(orphaned):
        reap_stale(record_file)
    remove_record(directory)
    return supervisor is not None or bool(orphaned)


def _end(supervisor: psutil.Process, on_wait: Callable[[float], None]) -> None:
    begun = time.monotonic()
    try:
        supervisor.terminate()
        while (waited_s := time.monotonic() - begun) < STOP_TIMEOUT_S:
            on_wait(waited_s)
            try:
                supervisor.wait(1.0)
            except psutil.TimeoutExpired:
                continue
            return
        # The kernel tells its children, on Linux; elsewhere they are reaped below by their records.
        supervisor.kill()
        supervisor.wait(_KILL_TIMEOUT_S)
    except psutil.NoSuchProcess:
        return  # it ended by itself
