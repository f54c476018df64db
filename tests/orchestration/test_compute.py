"""An error of a function on a worker is raised where its result is awaited, whatever it is."""

import errno
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(60)]
pytest.importorskip("distributed")
pytest.importorskip("prefect")

from distributed import Client, LocalCluster  # noqa: E402
from waiting import wait_for  # noqa: E402

from chess_snn.errors import (  # noqa: E402
    BeyondRepairError,
    MemoryExhaustedError,
    RankLostError,
    SchedulerLostError,
)
from chess_snn.tasks import compute  # noqa: E402
from chess_snn.tasks.cluster.worker_pool import WorkerPool  # noqa: E402
from chess_snn.tasks.compute import (  # noqa: E402
    DEVICE,
    StoppedError,
    run_all_on_devices,
    run_on_device,
    tried_again,
)
from chess_snn.tasks.remote import plain_error  # noqa: E402


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, resources={DEVICE: 1},
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def nobody_has_stopped(client):
    compute.start()
    yield
    compute.start()


def fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("error", [
    TimeoutError("no answer"), OSError(errno.ETIMEDOUT, "a shared disk"), ValueError("else"),
])
def test_an_error_of_the_function_is_raised_even_if_it_is_a_timeout(error):
    with pytest.raises(type(error)) as raised:
        run_on_device(fail, error)
    assert str(raised.value) == str(error)


def test_results_come_in_the_order_of_the_calls_however_long_they_take(monkeypatch):
    monkeypatch.setattr(compute, "_POLL_S", 0.01)
    assert run_all_on_devices([(after, 0.2, "slow"), (after, 0.0, "quick")]) == ["slow", "quick"]


@pytest.mark.timeout(20)
def test_nothing_to_do_is_done_at_once_bug(client):
    """It waited for a worker to begin, for ever."""
    with compute.watched_by(WorkerPool(client, print)):
        assert run_all_on_devices([]) == []


def test_who_waits_beside_others_gets_its_own_result_bug(monkeypatch):
    """A wait that timed out took along the results that Dask fetched for others with its own."""
    monkeypatch.setattr(compute, "_POLL_S", 0.0005)
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda number: run_on_device(after, 0.0, number), range(100)))
    assert results == list(range(100))


def test_waiting_ends_when_the_campaign_stops():
    threading.Timer(0.2, compute.stop).start()
    with pytest.raises(StoppedError):
        run_on_device(after, 4.0, "never awaited")


@pytest.fixture
def own_scheduler(tmp_path):
    """A scheduler in a process of its own, and the file with its address."""
    address = tmp_path / "scheduler.json"
    scheduler = subprocess.Popen([
        sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port",
        "0", "--no-dashboard", "--scheduler-file", str(address),
    ], stderr=subprocess.DEVNULL)
    try:
        while not address.exists():
            assert scheduler.poll() is None
            time.sleep(0.05)
        yield scheduler, str(address)
    finally:
        scheduler.kill()
        scheduler.wait()


def test_a_scheduler_that_dies_ends_what_waits_for_its_workers_bug(own_scheduler):
    """Dask made an UnboundLocalError of it."""
    scheduler, address = own_scheduler
    with Client(scheduler_file=address, timeout=5):
        killer = threading.Timer(0.3, scheduler.kill)
        killer.start()
        with pytest.raises(SchedulerLostError, match=r"tcp://127\.0\.0\.1:\d+"):
            run_all_on_devices([(time.sleep, 0.0)] * 3)
        killer.join()


def test_who_looks_at_its_client_tells_a_stop_from_a_scheduler_that_died(own_scheduler):
    scheduler, address = own_scheduler
    with Client(scheduler_file=address, timeout=5) as client:
        compute.give_up_if_cut_off(client)
        scheduler.kill()
        wait_for(lambda: client.status != "running", timeout_s=30)
        with pytest.raises(SchedulerLostError, match=r"tcp://127\.0\.0\.1:\d+"):
            compute.give_up_if_cut_off(client)
        compute.stop()
        with pytest.raises(StoppedError):
            compute.give_up_if_cut_off(client)


def test_what_is_no_task_is_tried_again_as_one_is_bug():
    """A rank that died while a damaged generation was trained again ended the campaign."""
    told: list[str] = []
    failures = [RankLostError("rank 1 was killed"), OSError(errno.EIO, "a disk")]

    def work() -> str:
        if failures:
            raise failures.pop(0)
        return "trained"

    assert tried_again(work, told.append) == "trained"
    assert len(told) == 2
    assert "rank 1" in told[0]


@pytest.mark.parametrize(("error", "tries"), [
    (RankLostError("again and again"), 3), (StoppedError("stopping"), 1),
    (BeyondRepairError("nothing to make it of"), 1),
])
def test_no_more_often_than_it_may_and_not_where_it_cannot_help(error, tries):
    made: list[int] = []

    def work() -> None:
        made.append(1)
        raise error

    with pytest.raises(type(error)):
        tried_again(work, lambda line: None)
    assert len(made) == tries


@pytest.mark.fault(13)
@pytest.mark.parametrize(("error", "where"), [
    (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB\nmore"), "device"),
    (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "worker"),
    (MemoryError(), "worker"),
])
def test_memory_that_runs_out_is_named_with_the_call_and_tried_again(error, where):
    plain = plain_error(error, (run_on_device, "campaign", 3, 0))
    assert isinstance(plain, MemoryExhaustedError)
    assert where in str(plain)
    assert "run_on_device(3, 0)" in str(plain)
    assert "\n" not in str(plain)


def after(seconds: float, result: object) -> object:
    time.sleep(seconds)
    return result
