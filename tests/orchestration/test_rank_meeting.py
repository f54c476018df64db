"""A call on a worker that waits for its place, and one that nobody waits for any more."""

import queue
import time

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(120)]
pytest.importorskip("distributed")

from distributed import Client, LocalCluster  # noqa: E402

from chess_snn.training.rank_launch import RankLayout  # noqa: E402
from tasks.cluster import rendezvous  # noqa: E402
from tasks.cluster.rendezvous import READY_TOPIC, tell_place  # noqa: E402

PATIENT_S = 60.0


@pytest.fixture
def client():
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://",
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def ready(client):
    """What workers say."""
    told = queue.SimpleQueue()
    client.subscribe_topic(READY_TOPIC, lambda event: told.put(event[1]))
    return told


def wait(meeting: str) -> RankLayout:
    return rendezvous.wait_for_place(meeting, rendezvous.own_call_wanted())


def test_a_machine_says_that_it_is_ready_and_is_told_its_place(client, ready):
    (worker,) = client.scheduler_info(-1)["workers"]
    future = client.submit(wait, "here", pure=False)
    told = ready.get(timeout=PATIENT_S)
    assert (told["meeting"], told["worker"]) == ("here", worker)
    assert 0 < told["port"] < 2**16
    layout = RankLayout(2, 2, 1, "10.0.0.1:29400", "10.0.0.2")
    assert client.run(tell_place, "elsewhere", layout) == {worker: False}
    assert client.run(tell_place, "here", layout) == {worker: True}
    assert future.result(PATIENT_S) == layout
    assert client.run(tell_place, "here", layout) == {worker: False}


def test_a_call_that_is_cancelled_notices(client, ready):
    future = client.submit(wait, "here", pure=False)
    ready.get(timeout=PATIENT_S)
    future.cancel()
    deadline = time.monotonic() + PATIENT_S
    while rendezvous._places:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    # So the worker is free for other work.
    assert client.submit(len, "abc").result(PATIENT_S) == 3


def test_a_call_whose_client_is_gone_notices(client, ready):
    with Client(client.scheduler.address, set_as_default=False) as other:
        future = other.submit(wait, "here", pure=False)
        ready.get(timeout=PATIENT_S)
        assert not future.done()
    deadline = time.monotonic() + PATIENT_S
    while rendezvous._places:
        assert time.monotonic() < deadline
        time.sleep(0.05)
