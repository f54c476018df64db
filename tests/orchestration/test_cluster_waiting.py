"""A scheduler that is not up yet, as in pods: it is waited for, and the wait can be ended."""

import os
import signal
import socket
import threading
import time
from contextlib import ExitStack

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(120)]
pytest.importorskip("distributed")

from distributed import LocalCluster  # noqa: E402

from chess_snn.errors import ClusterError  # noqa: E402
from chess_snn.interrupts import interruptible  # noqa: E402
from tasks.cluster import reaching  # noqa: E402
from tasks.cluster.reaching import wait_for_scheduler  # noqa: E402

LOOPBACK = "127.0.0.1"
ATTEMPT_S = 5.0
"""Of a connection that is refused: Dask tries again for so long."""


@pytest.fixture
def port():
    """That nobody listens on."""
    with socket.create_server((LOOPBACK, 0)) as server:
        return server.getsockname()[1]


def start_scheduler(stack: ExitStack, port: int) -> str:
    return stack.enter_context(LocalCluster(
        n_workers=0, processes=False, host=LOOPBACK, scheduler_port=port, dashboard_address=None,
    )).scheduler_address


@pytest.mark.slow
def test_one_that_comes_later_is_waited_for_and_people_are_told(port):
    said = []
    with ExitStack() as stack:

        def say(line):
            said.append(line)
            start_scheduler(stack, port)

        wait_for_scheduler(f"tcp://{LOOPBACK}:{port}", None, 60.0, say)
    assert said == [f"waiting for the scheduler at tcp://{LOOPBACK}:{port}, at most 60 s"]


@pytest.mark.slow
def test_one_that_never_comes_is_named_after_the_wait(port):
    began_s, said = time.monotonic(), []
    with pytest.raises(ClusterError, match=rf"cannot reach a scheduler at tcp://{LOOPBACK}:{port}"):
        wait_for_scheduler(f"tcp://{LOOPBACK}:{port}", None, ATTEMPT_S + 1, said.append)
    assert time.monotonic() - began_s > ATTEMPT_S + 1
    assert len(said) == 1


def test_one_of_another_version_is_not_waited_for(port, monkeypatch):
    said = []
    with ExitStack() as stack:
        address = start_scheduler(stack, port)
        monkeypatch.setattr(reaching.distributed, "__version__", "2020.1.0")
        with pytest.raises(ClusterError, match=r"2020\.1\.0 here"):
            wait_for_scheduler(address, None, 60.0, said.append)
    assert said == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after_s", [1.0, ATTEMPT_S + 0.5], ids=["in-an-attempt", "between-two"])
def test_a_signal_ends_the_wait(port, number, after_s):
    began_s = time.monotonic()
    timer = threading.Timer(after_s, os.kill, (os.getpid(), number))
    with interruptible():
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            wait_for_scheduler(f"tcp://{LOOPBACK}:{port}", None, 60.0, lambda line: None)
    assert time.monotonic() - began_s < after_s + ATTEMPT_S
