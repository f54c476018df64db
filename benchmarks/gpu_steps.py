"""A first run on a GPU in three commands: each part in its own process, with a limit.

A part that hangs or breaks the device's context takes nothing from the others. After each part the
results so far are packed into one file.
"""

import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.report import Report

MOST_STEP_S: Final = 600.0
"""Of one command on a machine that is lent."""
_RESERVE_S: Final = 20.0
"""To pack the results, and to begin with."""
_SHOWN_LINES: Final = 80
_ROOT: Final = Path(__file__).resolve().parents[1]
_MISSED_A_BAR: Final = 1
_GPU_TESTS: Final = (
    "-m", "gpu", "tests/nets", "tests/training", "tests/doctor", "--continue-on-collection-errors",
)


@dataclass(frozen=True, slots=True)
class Task:
    """A command with a limit."""

    name: str
    limit_s: float
    arguments: tuple[str, ...]
    """Of Python; ``{out}`` stands for the folder of results."""
    may_miss_bars: bool = True
    """Whether exit code 1 says that a figure missed its bar, and no more."""


def _bench(name: str, limit_s: float, *options: str) -> Task:
    written = ("--json-file", f"{{out}}/{name}.json")
    return Task(name, limit_s, ("-m", "benchmarks", *options, *written))


def _part(name: str, limit_s: float) -> Task:
    return _bench(name, limit_s, "gpu", "--device", "{device}", "--part", name)


def _tests(name: str, limit_s: float, *options: str) -> Task:
    arguments = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *options)
    return Task(name, limit_s, arguments, may_miss_bars=False)


STEPS: Final = {
    1: (
        _part("facts", 45),
        _bench("quick", 120, "gpu", "--device", "{device}", "--quick"),
        _tests("tests-of-kernels", 75, "tests/nets/test_neuron_kernels.py"),
        _tests("tests-on-gpu", 100, *_GPU_TESTS),
        _part("neurons", 50), _part("inference", 190),
    ),
    2: (_part("self-play", 320), _part("training", 160), _part("peers", 90)),
    3: (
        _part("fused", 240),
        _bench("learn", 330, "learn", "--out", "{out}/campaign", "--minutes", "3.5"),
    ),
}
"""Tasks by step; the limits of one add up to less than ``MOST_STEP_S``."""


def tasks_of(step: int, device: str) -> list[Task]:
    """The tasks of a step on ``device``."""
    return [
        Task(task.name, task.limit_s,
             tuple(each.replace("{device}", device) for each in task.arguments),
             task.may_miss_bars)
        for task in STEPS[step]
    ]


def run_tasks(report: Report, tasks: Sequence[Task], out: Path) -> list[str]:
    """Run each task from the root of the clone; return the names of those that failed.

    Writes to ``out`` the log of each task, and what the task itself writes there; ``out`` is packed
    after each. A task that outlasts the step is stopped like one that outlasts its limit.
    """
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if report.json_file is None:
        report.json_file = out / "step.json"
    began, failed = time.monotonic(), []
    for task in tasks:
        left_s = MOST_STEP_S - _RESERVE_S - (time.monotonic() - began)
        start = time.monotonic()
        code = _run_task(task, min(task.limit_s, left_s), out)
        report.add(f"{task.name}: took", time.monotonic() - start, "s")
        if code not in ((0, _MISSED_A_BAR) if task.may_miss_bars else (0,)):
            how = f"exit code {code}" if code is not None else "stopped at its limit"
            report.note(f"{task.name} FAILED: {how}; see {task.name}.log")
            failed.append(task.name)
        pack(out)
    return failed


def _run_task(task: Task, limit_s: float, out: Path) -> int | None:
    """Run one task and show the end of what it prints; None if it was stopped."""
    print(f"== {task.name}, at most {limit_s:.0f} s", file=sys.stderr, flush=True)
    arguments = [each.replace("{out}", str(out)) for each in task.arguments]
    log = out / f"{task.name}.log"
    code: int | None = None
    with log.open("wb") as stream, suppress(subprocess.TimeoutExpired):
        code = subprocess.run(
            [sys.executable, *arguments], cwd=_ROOT, stdout=stream, stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"}, timeout=max(1.0, limit_s), check=False,
        ).returncode
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    print("\n".join(lines[-_SHOWN_LINES:]), file=sys.stderr, flush=True)
    return code


def pack(out: Path) -> Path:
    """Put the files of ``out``, but for campaigns, into ``<out>.tar.gz`` in one step."""
    archive = out.with_name(f"{out.name}.tar.gz")
    partial = archive.with_name(f".{archive.name}")
    with tarfile.open(partial, "w:gz") as packed:
        packed.add(out, arcname=out.name, filter=_without_campaigns)
    return partial.replace(archive)


def _without_campaigns(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if entry.isdir() and Path(entry.name).name == "campaign" else entry
