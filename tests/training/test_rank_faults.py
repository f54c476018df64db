"""Ranks under their launcher: whatever is killed or hangs, it is named, and nothing is left."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from rank_driver import Case
from rank_group import driver_environment, write_task
from waiting import assert_gone, wait_for

from chess_snn.errors import RankLostError, UsageError
from chess_snn.training.rank_launch import run_ranks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LONG = Case("long", steps=100_000)

PARENT = """
import sys
from chess_snn.training.rank_launch import run_ranks
run_ranks(2, "rank_driver", sys.argv[1:], on_line=lambda line: print(line, flush=True))
"""


@pytest.fixture(autouse=True)
def _driver_on_the_path(monkeypatch):
    for name, value in driver_environment().items():
        monkeypatch.setenv(name, value)


def our_ranks(file):
    """The processes that were given ``file``: ranks, and who started them.

    What each was started with is in its ``info``: one that has died since cannot be asked.
    """
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if str(file) in (process.info["cmdline"] or []):
            found.append(process)
    return found


def launch(file, then=lambda: None):
    """Run ranks here; ``then`` is called once they have begun."""
    run_ranks(2, "rank_driver", [str(file)], on_line=lambda _line: then())


@pytest.mark.fault(7)
def test_a_killed_rank_is_named_and_the_others_end(searched_shard, tmp_path):
    file = write_task(tmp_path / "g", searched_shard, [Case("c", fault="kill", steps=50_000)])
    with pytest.raises(RankLostError, match=r"^rank 1 \(process \d+\) .*SIGKILL"):
        launch(file)
    assert_gone(our_ranks(file))


def test_a_rank_that_aborts_is_named_with_the_end_of_its_log(searched_shard, tmp_path):
    file = write_task(tmp_path / "g", searched_shard, [Case("c", fault="abort", steps=50_000)])
    with pytest.raises(RankLostError, match=r"(?s)^rank 1 .*SIGABRT.*after 42 errors"):
        launch(file)
    assert_gone(our_ranks(file))


@pytest.mark.fault(5)
def test_a_killed_parent_takes_its_ranks_along(searched_shard, tmp_path):
    file, scratch = write_task(tmp_path / "g", searched_shard, [LONG]), tmp_path / "scratch"
    scratch.mkdir()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(file)], stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    try:
        assert parent.stdout.readline() == b"begun\n"
        wait_for(lambda: sum("rank_driver" in p.info["cmdline"] for p in our_ranks(file)) == 2)
    finally:
        parent.kill()
        parent.wait()
    assert_gone(our_ranks(file))
    assert list(scratch.iterdir()) == []


@pytest.mark.fault(8)
@pytest.mark.parametrize("fault", ["freeze", "sleep"])
def test_a_rank_that_hangs_is_named(searched_shard, tmp_path, fault):
    """Stopped as a whole, or only its main thread."""
    case = Case("c", fault=fault, fault_step=1)
    file = write_task(tmp_path / "g", searched_shard, [case], timeout_s=6.0)
    began = time.monotonic()
    with pytest.raises(RankLostError, match=r"^rank 1 \(process \d+ on .+\) "):
        launch(file)
    assert time.monotonic() - began < 120
    assert_gone(our_ranks(file))


def test_what_a_rank_raises_is_raised_here(searched_shard, tmp_path):
    file = write_task(tmp_path / "g", searched_shard, [Case("c", fault="settings")])
    with pytest.raises(UsageError, match=r"training\.weight_decay = 0\.5"):
        launch(file)
    assert_gone(our_ranks(file))


@pytest.mark.fault(22)
def test_ctrl_c_ends_them_all(searched_shard, tmp_path):
    file = write_task(tmp_path / "g", searched_shard, [LONG])
    with pytest.raises(KeyboardInterrupt):
        launch(file, then=lambda: os.kill(os.getpid(), signal.SIGINT))
    assert_gone(our_ranks(file))
