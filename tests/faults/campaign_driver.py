"""Real campaigns in processes of their own, to be killed and resumed."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import psutil
from small_campaigns import SMALL
from waiting import assert_gone

from chess_snn import failpoints

ROOT = Path(__file__).parents[2]
START_TIMEOUT_S = 900.0
FINISH_TIMEOUT_S = 1800.0
"""Limits for a machine on which many others compute; nothing here is about pace."""
POLL_S = 0.02

GROWING = (*SMALL, 'net.growth=["2x12@0.5"]')
"""Settings of the campaigns: the second iteration's network is larger."""
SMALL_OPTIONS = [f"--set={setting}" for setting in GROWING]


def launch(
    *arguments: str, log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Run ``chess-snn campaign ...`` in a process group of its own."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT", "MLFLOW"))}
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "chess_snn", "campaign", *arguments],
            stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env=inherited | dict(environment or {}), start_new_session=True,
        )


@cache
def all_failpoints() -> set[str]:
    """The names of all failpoints in the product's sources."""
    kinds = ("checkpoint", "shard")  # of folders that campaigns commit
    found = set()
    for package in ("chess_snn", "flows", "tasks"):
        for file in (ROOT / package).rglob("*.py"):
            for name in re.findall(r'^ +failpoint\(f?"([^"]+)"\)', file.read_text(), re.MULTILINE):
                found |= {re.sub(r"\{(manifest\.)?kind\}", kind, name) for kind in kinds}
    return found


def faults_at(folder: Path, **actions: str) -> dict[str, str]:
    """The environment in which processes do ``actions``, once each; a double underscore is a dot.

    Whoever does one leaves a file of the failpoint's name in ``folder``, without its ``@2``.
    """
    folder.mkdir()
    at = {name.replace("__", "."): action for name, action in actions.items()}
    assert {name.partition("@")[0] for name in at} <= all_failpoints()
    text = ",".join(f"{name}={action}" for name, action in at.items())
    return {failpoints.VARIABLE: text, failpoints.DIRECTORY_VARIABLE: str(folder)}


def settings(**values: object) -> list[str]:
    """``--set`` options; a double underscore is a dot."""
    return [f"--set={name.replace('__', '.')}={value}" for name, value in values.items()]


def wait_until(
    condition: Callable[[], bool], process: subprocess.Popen[bytes], log: Path,
    within_s: float = START_TIMEOUT_S,
) -> None:
    """Wait for ``condition`` while ``process`` is alive."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert process.poll() is None, f"ended too early:\n{log.read_text()[-3000:]}"
        assert time.monotonic() < deadline, f"waited too long:\n{log.read_text()[-3000:]}"
        time.sleep(POLL_S)


def finish(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for a good end."""
    try:
        process.wait(FINISH_TIMEOUT_S)
    finally:
        if process.poll() is None:
            process.kill()
    assert process.returncode == 0, log.read_text()[-3000:]


def descendants(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Every process that ``process`` has started, directly or not."""
    return psutil.Process(process.pid).children(recursive=True)


def command_of(process: psutil.Process) -> list[str]:
    """Command it was started with; empty if it has ended since it was seen."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def dask_workers(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The worker processes of a running campaign."""
    return [
        child for child in descendants(process)
        if any("multiprocessing" in part and "spawn_main" in part for part in command_of(child))
    ]


def kill_campaign(process: subprocess.Popen[bytes]) -> None:
    """kill -9, and see that everything it had started goes with it."""
    started = descendants(process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert_gone(started)
