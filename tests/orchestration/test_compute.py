"""What a function raises on a worker is raised where its result is awaited, whatever it is."""

import errno
import threading
import time

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(60)]
pytest.importorskip("distributed")
pytest.importorskip("prefect")

from distributed import Client, LocalCluster  # noqa: E402

from tasks import compute  # noqa: E402
from tasks.compute import DEVICE, StoppedError, run_all_on_devices, run_on_device  # noqa: E402


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


def test_waiting_ends_when_the_campaign_stops():
    threading.Timer(0.2, compute.stop).start()
    with pytest.raises(StoppedError):
        run_on_device(after, 4.0, "never awaited")


def after(seconds: float, result: str) -> str:
    time.sleep(seconds)
    return result
