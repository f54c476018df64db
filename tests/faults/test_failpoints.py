"""Killed at any named instant, a campaign comes to the same games and weights."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from campaign_driver import (
    ROOT,
    SMALL_OPTIONS,
    all_failpoints,
    dask_workers,
    faults_at,
    finish,
    kill_campaign,
    launch,
    wait_until,
)
from small_campaigns import assert_same_campaign

from chess_snn import failpoints

CAMPAIGN_KILLED_AT = {
    "the first plan": (
        "file.written", "checkpoint.staged", "checkpoint.sealed", "checkpoint.renamed",
        "plan.committed",
    ),
    # The first shard is the one of warming up, which every process plays again.
    "shards": (
        "shard.played", "shard.staged", "shard.sealed", "shard.renamed", "shard.staged@2",
        "shard.sealed@2", "shard.renamed@2",
    ),
    "training": (
        "training.begins", "training.done", "checkpoint.staged", "checkpoint.sealed",
        "checkpoint.renamed", "training.committed",
    ),
    "evaluation": (
        "conversion.played", "match.played", "match.joined", "receipt.begins",
        "receipt.committed",
    ),
    "recording": ("mlflow.recorded",),
}
"""Every place, in the order in which a campaign comes there."""
# The first checkpoint is generation 0's.
WORKERS_KILLED_AT = (
    ("shard.played", "training.begins", "conversion.played"),
    ("shard.staged@2", "checkpoint.staged@2", "match.played"),
    ("shard.sealed@2", "checkpoint.sealed@2", "training.done"),
    ("shard.renamed@2", "checkpoint.renamed@2", "training.committed"),
)

with_campaigns = [
    pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(7200),
]


def marked(value: object, *marks: pytest.MarkDecorator, id: str | None = None) -> object:
    return pytest.param(value, marks=[*with_campaigns, *marks], id=id)


def start_small(
    tmp_path: Path, **actions: str
) -> tuple[Path, Path, Path, subprocess.Popen[bytes]]:
    """Start a campaign with faults: its folder, its log, the folder of marks, and its process."""
    path, log, fired = tmp_path / "c", tmp_path / "log", tmp_path / "fired"
    environment = faults_at(fired, **actions)
    command = ("start", "--dir", str(path), *SMALL_OPTIONS)
    return path, log, fired, launch(*command, log=log, environment=environment)


@pytest.mark.parametrize("names", [
    marked(names, pytest.mark.fault(3), id=stage) for stage, names in CAMPAIGN_KILLED_AT.items()
])
def test_a_campaign_killed_at_every_failpoint_comes_to_the_same_result(
    tmp_path: Path, undisturbed_small: Path, names: tuple[str, ...]
) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    command = ["start", "--dir", str(path), *SMALL_OPTIONS]
    for name in names:
        fired = tmp_path / f"fired at {name}"
        process = launch(*command, log=log, environment=faults_at(fired, **{name: "hold"}))
        wait_until(mark_of(fired, name).exists, process, log)
        kill_campaign(process)
        command = ["resume", str(path)]

    finish(launch(*command, log=log), log)
    assert re.search(r"\d+ flow runs", log.read_text())
    assert_same_campaign(path, undisturbed_small)


@pytest.mark.parametrize(
    "kind", [marked(n, pytest.mark.fault(3)) for n in ("plans", "matches", "receipts")]
)
def test_a_campaign_killed_before_a_file_has_its_name_resumes_to_the_same_result(
    tmp_path: Path, undisturbed_small: Path, kind: str
) -> None:
    path, log, fired, process = start_small(tmp_path, file__written="hold")
    hold_one_at(fired, lambda _: has_unnamed_files(path / kind), process, log)
    kill_campaign(process)
    assert has_unnamed_files(path / kind)

    finish(launch("resume", str(path), log=log), log)
    assert not has_unnamed_files(path / kind)
    assert_same_campaign(path, undisturbed_small)


@pytest.mark.orchestration
@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.fault(1)
def test_a_worker_killed_before_its_match_has_its_name_costs_what_it_was_doing(
    tmp_path: Path, undisturbed_small: Path
) -> None:
    path, log, fired, process = start_small(tmp_path, file__written="hold")
    workers: set[int] = set()

    def is_in_a_worker(pid: int) -> bool:
        workers.update(worker.pid for worker in dask_workers(process))
        return pid in workers and has_unnamed_files(path / "matches")

    os.kill(hold_one_at(fired, is_in_a_worker, process, log), signal.SIGKILL)
    finish(process, log)  # the mark stays, and everybody else passes
    assert "SIGKILL" in log.read_text()
    assert_same_campaign(path, undisturbed_small)


def mark_of(fired: Path, place: str) -> Path:
    """The file that says that somebody was met at ``place``, such as ``shard.sealed@2``."""
    return fired / place.partition("@")[0]


def hold_one_at(
    fired: Path, is_meant: Callable[[int], bool], process: subprocess.Popen[bytes], log: Path
) -> int:
    """Let everybody on who is held at ``file.written`` but the first that is meant; its pid."""
    mark = fired / "file.written"
    while True:
        wait_until(lambda: mark.exists() and bool(mark.read_text()), process, log)
        pid = int(mark.read_text())
        if is_meant(pid):
            return pid
        mark.unlink()


def has_unnamed_files(folder: Path) -> bool:
    return any(folder.rglob(".tmp-*"))


@pytest.mark.parametrize("names", [
    marked(names, pytest.mark.fault(1), id=names[0]) for names in WORKERS_KILLED_AT
])
def test_workers_killed_at_failpoints_cost_what_they_were_doing(
    tmp_path: Path, undisturbed_small: Path, names: tuple[str, ...]
) -> None:
    path, log, fired, process = start_small(tmp_path, **dict.fromkeys(names, "kill"))
    finish(process, log)
    for name in names:
        assert mark_of(fired, name).exists(), f"no worker reached {name}"
    assert log.read_text().count("SIGKILL") >= len(names)
    assert_same_campaign(path, undisturbed_small)


@pytest.mark.parametrize("name", [marked("shard.played"), marked("training.done")])
def test_a_task_that_raises_is_tried_again(
    tmp_path: Path, undisturbed_small: Path, name: str
) -> None:
    path, log, fired, process = start_small(tmp_path, **{name: "raise"})
    finish(process, log)
    assert (fired / name).exists(), "nobody came there"
    assert_same_campaign(path, undisturbed_small)


def test_a_campaign_is_killed_at_every_failpoint() -> None:
    places = {name.partition("@")[0] for names in CAMPAIGN_KILLED_AT.values() for name in names}
    assert places == all_failpoints() - {"campaign.stopping"}


def test_a_mistyped_failpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        faults_at(tmp_path / "place", shard__plaid="kill")
    for text in ("shard.played", "shard.played=explode", "shard.played@x=kill"):
        with pytest.raises(ValueError):  # noqa: PT011 - any will do
            failpoints._read(text)


def at_a_failpoint(folder: Path | None, actions: str) -> subprocess.CompletedProcess[str]:
    """A process that comes to two places, the first of them twice."""
    code = (
        "from chess_snn.failpoints import failpoint\n"
        "for name in ('shard.played', 'shard.played', 'shard.staged'):\n"
        "    failpoint(name); print(name, flush=True)\n"
    )
    variables = {failpoints.VARIABLE: actions}
    if folder is not None:
        variables[failpoints.DIRECTORY_VARIABLE] = str(folder)
    return subprocess.run(
        [sys.executable, "-c", code], env=variables, cwd=ROOT, capture_output=True, text=True,
        check=False, timeout=60,
    )


def test_a_failpoint_fires_once_for_all_processes(tmp_path: Path) -> None:
    first = at_a_failpoint(tmp_path, "shard.played=kill")
    assert (first.returncode, first.stdout) == (-9, "")
    second = at_a_failpoint(tmp_path, "shard.played=kill")
    assert (second.returncode, len(second.stdout.splitlines())) == (0, 3)


def test_a_failpoint_fires_at_the_passing_that_was_asked_for(tmp_path: Path) -> None:
    first = at_a_failpoint(tmp_path, "shard.played@4=kill, shard.staged@2=raise")
    assert (first.returncode, len(first.stdout.splitlines())) == (0, 3)
    assert not {"shard.played", "shard.staged"} & {path.name for path in tmp_path.iterdir()}
    second = at_a_failpoint(tmp_path, "shard.played@4=kill")
    assert (second.returncode, second.stdout) == (-9, "shard.played\n")
    third = at_a_failpoint(tmp_path, "shard.played@4=kill, shard.staged@2=raise")
    assert third.stdout.splitlines() == ["shard.played", "shard.played"]
    assert "FailpointError" in third.stderr


def test_without_a_folder_for_marks_nothing_is_armed_silently() -> None:
    assert "CHESS_SNN_FAILPOINTS_DIR" in at_a_failpoint(None, "shard.played=kill").stderr
    assert at_a_failpoint(None, "").returncode == 0
