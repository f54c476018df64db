"""Nothing that a guarded command has started outlives it, however either of them ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.orchestration,
    pytest.mark.skipif(sys.platform != "linux", reason="subreapers are Linux's"),
]
psutil = pytest.importorskip("psutil")

from waiting import GONE_WITHIN_S, assert_gone, wait_for  # noqa: E402

from chess_snn import processes  # noqa: E402

FAMILY = """
import os, signal, subprocess, sys, time
def start(code):
    return subprocess.Popen([sys.executable, "-c", code, deaf], start_new_session=True)
deaf = sys.argv[1] + ".deaf"
stubborn = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "open(sys.argv[1], 'w').close(); time.sleep(60)"
)
orphan = "from subprocess import Popen; Popen(['sleep', '60'])"
start(stubborn); start("import time; time.sleep(60)"); start(orphan).wait()
while not os.path.exists(deaf):
    time.sleep(0.02)
open(sys.argv[1], "w").close()
{end}
"""
"""Three descendants in sessions of their own: one ignores SIGTERM, one has lost its parent."""


def start_family(tmp_path, end="time.sleep(60)", grace_s=1.0):
    """The guard, and all its descendants once they are up."""
    mark = tmp_path / "up"
    command = [sys.executable, "-c", FAMILY.format(end=end), str(mark)]
    started = subprocess.Popen(
        [sys.executable, "-I", processes.__file__, str(os.getpid()), "--tree", str(grace_s),
         *command],
        start_new_session=True,
    )
    wait_for(mark.exists, timeout_s=60)
    return started, psutil.Process(started.pid).children(recursive=True)


def test_told_to_stop_it_ends_the_command_and_all_its_descendants(tmp_path):
    started, family = start_family(tmp_path)
    assert len(family) == 4, "the command, two children, and an orphan that the guard took over"
    started.send_signal(signal.SIGTERM)
    assert started.wait(GONE_WITHIN_S) == processes.EXIT_STOPPED
    assert_gone(family)


def test_a_command_runs_on_until_it_ends_by_itself_and_leaves_its_exit_code_alone(tmp_path):
    ends = "while os.path.exists(sys.argv[1]): time.sleep(0.02)\nsys.exit(7)"
    started, family = start_family(tmp_path, ends)
    time.sleep(1.5)
    assert started.poll() is None
    assert all(process.is_running() for process in family)
    (tmp_path / "up").unlink()
    assert started.wait(GONE_WITHIN_S) == 7
    assert_gone(family)


@pytest.mark.fault(5)
def test_a_killed_command_leaves_nothing(tmp_path):
    started, family = start_family(tmp_path)
    command = next(process for process in family if process.ppid() == started.pid
                   and "open(sys.argv[1]" in " ".join(process.cmdline()))
    command.kill()
    assert started.wait(GONE_WITHIN_S) == -signal.SIGKILL % 256
    assert_gone(family)


@pytest.mark.slow
@pytest.mark.fault(5)
def test_a_killed_owner_leaves_nothing_however_long_the_grace(tmp_path):
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]; from pathlib import Path\n"
        "from test_process_trees import start_family\n"
        "import time; start_family(Path(sys.argv[1]), grace_s=600); print('up', flush=True)\n"
        "time.sleep(60)"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path, *Path(__file__).parents[:2]],
        stdout=subprocess.PIPE, text=True,
    )
    assert owner.stdout.readline() == "up\n"
    family = psutil.Process(owner.pid).children(recursive=True)
    assert len(family) == 5
    owner.kill()
    owner.wait()
    assert_gone(family)
