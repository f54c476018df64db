"""Environment that every test may rely on."""

import fcntl
import gc
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

if "PYTEST_XDIST_WORKER" in os.environ:
    # Tests share the cores already; torch reads this when it is first imported.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from default_tests import (  # noqa: F401 - hooks
    leave_out_compiled,
    pytest_runtest_call,
    pytest_runtest_logreport,
    pytest_terminal_summary,
)
from hypothesis import settings

# Campaigns of a home share files: not those of the user, nor those of another test process.
_HOME = tempfile.TemporaryDirectory(prefix="chess-snn-home-")
os.environ["CHESS_SNN_HOME"] = _HOME.name

# No property has a deadline: a first example may compile kernels, and a busy machine is no bug.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell script's background jobs inherit this, and would hand it on to every process that a
    # test starts and then interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

SLOWEST_FIRST = ("faults", "orchestration", "uci")
"""Folders whose files take longest: begun last, one of them would keep the others waiting."""


def pytest_collection_modifyitems(config, items):
    """Run the folders of long files first; the order is the same in every process."""
    gc.freeze()  # what tests import stays, and Python need not look through it again
    leave_out_compiled(config, items)
    items.sort(key=lambda item: not any(name in item.path.parts for name in SLOWEST_FIRST))


@pytest.fixture(scope="session")
def kept_campaign(tmp_path_factory):
    """Play a campaign once for all test processes of a run; a test that changes it copies it."""
    import torch  # noqa: PLC0415 - after the variables above
    from small_campaigns import MICRO, play_campaign  # noqa: PLC0415

    from chess_snn.campaign import CampaignFolder  # noqa: PLC0415

    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def keep(name, *changes, settings=MICRO):
        played = root / f"{name}.played"
        with (root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not played.exists():
                torch.set_num_threads(1)
                play_campaign(root / name / "campaign", *changes, settings=settings)
                played.touch()
        return CampaignFolder.open(root / name / "campaign")

    return keep


@pytest.fixture(scope="session")
def played_campaign(kept_campaign):
    """A finished campaign of the size MICRO."""
    return kept_campaign("chess")


@pytest.fixture(scope="session")
def campaign_2048(kept_campaign):
    """A finished campaign of the size MICRO_2048."""
    from small_campaigns import MICRO_2048  # noqa: PLC0415 - after the variables above

    return kept_campaign("2048", settings=MICRO_2048)


@pytest.fixture
def threads_for_processes(monkeypatch):
    """Workers that label and import are threads: a process loads torch first, for seconds."""
    from chess_snn.campaign import labelling  # noqa: PLC0415 - after the variables above
    from chess_snn.pgn import importing  # noqa: PLC0415

    for module in (labelling, importing):
        monkeypatch.setattr(module, "process_pool", ThreadPoolExecutor)
    yield
    labelling._teacher.cache_clear()


@pytest.fixture
def stored_campaign(tmp_path):
    """A copy of the stored campaign of chess."""
    from stored_files import copy_campaign  # noqa: PLC0415

    return copy_campaign(tmp_path)


@pytest.fixture
def dead_pid() -> int:
    """Id of a process that has ended."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    return dead.pid
