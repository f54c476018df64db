"""The task that writes a campaign's report: the command ``report`` as a process of low priority."""

import subprocess
import sys
from contextlib import suppress
from typing import Final

import psutil
from prefect import task

from chess_snn import processes
from chess_snn.campaign import CampaignFolder

_PRIORITY: Final = 10
"""Niceness: the report must not slow down self-play and training beside it."""


@task(name="report", task_run_name="report")
def report(folder: CampaignFolder) -> str | None:
    """Write the campaign's report into its folder; it is a view, so the campaign does without it.

    Returns:
        Why it could not be written; None where it was.
    """
    child = processes.start(
        [sys.executable, "-m", "chess_snn", "report", str(folder.path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )
    with suppress(psutil.NoSuchProcess):
        psutil.Process(child.pid).nice(_PRIORITY)
    _, errors = child.communicate()
    if child.returncode == 0:
        return None
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("error: ") if lines else processes.describe_exit(child.returncode)
