"""Killed at any named instant, a campaign comes to the same games and weights."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from campaign_driver import (
    SMALL,
    SMALL_ITERATIONS,
    assert_same_campaign,
    faults_at,
    finish,
    kill_campaign,
    launch,
    wait_until,
)

from chess_snn import failpoints
from chess_snn.errors import UsageError
from chess_snn.failpoints import FAILPOINTS, read_failpoints

ROOT = Path(__file__).parents[2]
PACKAGES = {"chess_snn", "flows", "tasks"}
IN_WORKERS = [
    "shard.played", "shard.staged", "shard.sealed", "shard.renamed", "training.begins",
    "training.done", "training.committed", "conversion.played", "match.played",
]
WHILE_RUNNING = [name for name in FAILPOINTS if name != "campaign.stopping"]

with_campaigns = [
    pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(7200),
]


def marked(name: str, *marks: pytest.MarkDecorator) -> object:
    return pytest.param(name, marks=[*with_campaigns, *marks], id=name)


@pytest.mark.parametrize("name", [marked(n, pytest.mark.fault(3)) for n in WHILE_RUNNING])
def test_a_campaign_killed_at_a_failpoint_resumes_to_the_same_result(
    tmp_path: Path, undisturbed_small: Path, name: str
) -> None:
    path, log, fired = tmp_path / "c", tmp_path / "log", tmp_path / "fired"
    environment = faults_at(fired, **{name: "hold"})
    process = launch("start", "--dir", str(path), *SMALL, log=log, environment=environment)
    wait_until((fired / name).exists, process, log)
    kill_campaign(process)

    finish(launch("resume", str(path), log=log), log)
    assert re.search(r"closed \d+ flow runs that a killed process had left open", log.read_text())
    assert_same_campaign(path, undisturbed_small, SMALL_ITERATIONS)


@pytest.mark.parametrize("name", [marked(n, pytest.mark.fault(1)) for n in IN_WORKERS])
def test_a_worker_killed_at_a_failpoint_costs_what_it_was_doing(
    tmp_path: Path, undisturbed_small: Path, name: str
) -> None:
    path, log, fired = tmp_path / "c", tmp_path / "log", tmp_path / "fired"
    environment = faults_at(fired, **{name: "kill"})
    finish(launch("start", "--dir", str(path), *SMALL, log=log, environment=environment), log)
    assert (fired / name).exists(), "nobody came there"
    assert "was killed by SIGKILL; another is started" in log.read_text()
    assert_same_campaign(path, undisturbed_small, SMALL_ITERATIONS)


@pytest.mark.parametrize("name", [marked("shard.played"), marked("training.done")])
def test_a_task_that_raises_is_tried_again(
    tmp_path: Path, undisturbed_small: Path, name: str
) -> None:
    path, log, fired = tmp_path / "c", tmp_path / "log", tmp_path / "fired"
    environment = faults_at(fired, **{name: "raise"})
    finish(launch("start", "--dir", str(path), *SMALL, log=log, environment=environment), log)
    assert (fired / name).exists(), "nobody came there"
    assert_same_campaign(path, undisturbed_small, SMALL_ITERATIONS)


def test_every_failpoint_of_the_code_is_on_the_list_and_no_other() -> None:
    kinds = {"checkpoint", "shard"}  # of folders that campaigns commit
    found = set()
    for file in ROOT.glob("*/**/*.py"):
        if file.name == "failpoints.py" or file.relative_to(ROOT).parts[0] not in PACKAGES:
            continue
        for name in re.findall(r'failpoint\(f?"([^"]+)"\)', file.read_text()):
            found |= {re.sub(r"\{(manifest\.)?kind\}", kind, name) for kind in kinds}
    assert found == set(FAILPOINTS)


@pytest.mark.parametrize(("text", "reason"), [
    ("shard.plaid=kill", "names 'shard.plaid'; known: file.written"),
    ("shard.played", "an action is kill, hold"),
    ("shard.played=explode", "'shard.played=explode'; an action is kill, hold"),
    ("shard.played=kill:3", "an action is kill, hold"),
    ("shard.played=sleep", "an action is kill, hold"),
    ("shard.played=sleep:soon", "an action is kill, hold"),
])
def test_what_is_no_failpoint_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=re.escape(reason)):
        read_failpoints(text)


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


def test_each_action_does_what_it_says(tmp_path: Path) -> None:
    raised = at_a_failpoint(tmp_path, "shard.staged=raise, shard.played=sleep:0.01")
    assert raised.stdout.splitlines() == ["shard.played", "shard.played"]
    assert "FailpointError: the environment asked for a fault at shard.staged" in raised.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"shard.staged", "shard.played"}


def test_without_a_folder_for_marks_nothing_is_armed_silently() -> None:
    assert "CHESS_SNN_FAILPOINTS_DIR is not; name a folder" in at_a_failpoint(
        None, "shard.played=kill"
    ).stderr
    assert at_a_failpoint(None, "").returncode == 0
