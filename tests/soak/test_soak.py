"""The soak itself: what it plans, what it notices, and a very short one."""

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("mlflow")
pytest.importorskip("prefect")

from soak.campaign import is_explained
from soak.faults import DECK, DECK_OF_RANKS, Kind, planned_faults

pytestmark = pytest.mark.orchestration

REPOSITORY = Path(__file__).parents[2]


def test_the_schedule_follows_from_the_seed_and_has_every_kind_of_fault():
    def kinds(seed, in_ranks=True):
        size = sum(DECK.values()) + in_ranks * sum(DECK_OF_RANKS.values())
        return [planned.kind for planned in islice(planned_faults(seed, 0, in_ranks), size)]

    assert kinds(1) == kinds(1) != kinds(2)
    assert set(kinds(3)) == set(Kind)
    assert set(kinds(3, in_ranks=False)) == set(Kind) - DECK_OF_RANKS.keys()


@pytest.mark.parametrize(("code", "kind"), [
    *((2, kind) for kind in Kind), (-9, Kind.KILL_WORKER), (130, Kind.KILL_CAMPAIGN),
    (1, Kind.KILL_PREFECT), (-11, Kind.KILL_WORKER),
])
def test_an_end_that_no_fault_explains_is_noticed(code, kind):
    assert not is_explained(code, "error: anything", {kind: 9})


@pytest.mark.parametrize(("kind", "times", "error"), [
    (Kind.KILL_PREFECT, 1, "the Prefect server at http://127.0.0.1:1 does not answer"),
    (Kind.FILL_DISK, 1, "cannot write a: No space\nleft on device; free space on that disk"),
    (Kind.KILL_MLFLOW, 1, "the tracking store http://127.0.0.1:1 failed: no answer"),
    (Kind.KILL_WORKER, 4, "4 workers died one after another that had train(0) to do"),
    (Kind.KILL_RANK, 3, "rank 1 (process 7) was killed by SIGKILL"),
])
def test_an_error_is_explained_by_the_fault_it_names_and_no_other(kind, times, error):
    printed = f"error: something before\nerror: {error}"
    assert is_explained(2, printed, {kind: times})
    assert not is_explained(2, printed, {kind: times - 1})
    assert not is_explained(2, printed, {Kind.KILL_CAMPAIGN: times})


def test_an_end_is_explained_by_the_signal_and_an_error_by_the_damage_it_names():
    assert is_explained(-9, "", {Kind.KILL_CAMPAIGN: 1})
    assert is_explained(130, "", {Kind.TERMINATE_CAMPAIGN: 1})
    path = Path("/c/games/shard-0000")
    assert is_explained(2, f"error: {path} is corrupt", {}, {path})
    assert not is_explained(2, "error: something else", {}, {path})


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_a_minute_of_faults_loses_nothing(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--out", str(tmp_path / "soak"), "--minutes", "1"],
        cwd=REPOSITORY, env=os.environ | {"PYTHONPATH": str(REPOSITORY)}, capture_output=True,
        text=True, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "soak" / "soak.json").read_text())
    assert any(campaign["faults"] for campaign in report["campaigns"])
    assert not (tmp_path / "soak" / "disk").is_mount()
