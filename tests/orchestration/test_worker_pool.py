"""Workers that come, die, fail and are left out: real ones, on two simulated devices."""

import os
import signal
import sys
import time

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(300)]
pytest.importorskip("distributed")
pytest.importorskip("prefect")

import cloudpickle  # noqa: E402
import dask  # noqa: E402
from distributed import Client, Nanny  # noqa: E402

from chess_snn.campaign import load_config  # noqa: E402
from chess_snn.campaign.machine.slots import own_slot  # noqa: E402
from chess_snn.campaign.machine.workers import plan_here  # noqa: E402
from chess_snn.devices import SIMULATED_GPUS  # noqa: E402
from chess_snn.tasks import compute  # noqa: E402
from chess_snn.tasks.cluster.devices import STRIKES  # noqa: E402
from chess_snn.tasks.cluster.nannies import local_cluster  # noqa: E402
from chess_snn.tasks.cluster.worker_pool import WorkerPool  # noqa: E402
from chess_snn.tasks.cluster.worker_setup import DASK_SETTINGS  # noqa: E402

# Workers cannot import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


PATIENT_S = 120.0


class Scene:
    """A cluster that is watched, and what was said of it."""

    def __init__(self, cluster, client):
        self.cluster, self.client, self.lines = cluster, client, []
        self.pool = WorkerPool(client, self.lines.append)

    def wait_for_line(self, *words: str, times: int = 1) -> str:
        """The line with ``words``, once there are so many of them."""
        deadline = time.monotonic() + PATIENT_S
        while time.monotonic() < deadline:
            found = [line for line in self.lines if all(word in line for word in words)]
            if len(found) >= times:
                return found[-1]
            time.sleep(0.05)
        raise AssertionError(f"{words} was not said {times} times: {self.lines}")

    def wait_for_devices(self, *devices: int) -> None:
        deadline = time.monotonic() + PATIENT_S
        while self.devices() != list(devices):
            assert time.monotonic() < deadline, f"{self.devices()}: {self.lines}"
            time.sleep(0.05)

    def devices(self) -> list[int]:
        return sorted({int(worker.device.split()[1]) for worker in self.pool.workers})


@pytest.fixture
def scene(monkeypatch):
    monkeypatch.setenv(SIMULATED_GPUS, "2")
    plan = plan_here(load_config(settings=["execution.workers=2"]))
    with (
        dask.config.set(DASK_SETTINGS),
        local_cluster(plan.slots) as cluster,
        Client(cluster) as client,
    ):
        scene = Scene(cluster, client)
        compute.start()
        with scene.pool.running(), compute.watched_by(scene.pool):
            yield scene


def own_device(_: int) -> int:
    time.sleep(0.02)
    return own_slot().device.index


def fail_on(device: int, number: int) -> int:
    if own_device(number) == device:
        raise RuntimeError("CUDA error: uncorrectable ECC error encountered")
    return number


def fail_everywhere(_: int) -> None:
    raise ArithmeticError("of the work itself")


def die_on(device: int, number: int) -> int:
    if own_device(number) == device:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def calls(function, *arguments, count: int):
    return [(function, *arguments, number) for number in range(count)]


def test_both_devices_work_and_an_error_of_the_work_itself_is_raised_and_blames_nobody(scene):
    for _ in range(4):
        with pytest.raises(ArithmeticError):
            compute.run_on_device(fail_everywhere, 0)
    assert set(compute.run_all_on_devices(calls(own_device, count=40))) == {0, 1}
    assert scene.devices() == [0, 1]
    assert scene.lines == []
    deadline = time.monotonic() + 60
    while len(scene.pool.states) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert all(state.memory_bytes > 0 for state in scene.pool.states)
    assert sorted(state.name[-6:] for state in scene.pool.states) == ["gpu0-0", "gpu1-1"]


def test_a_device_that_fails_at_once_is_retired_and_the_rest_goes_on(scene):
    assert compute.run_all_on_devices(calls(fail_on, 0, count=30)) == list(range(30))
    scene.wait_for_line("GPU 0 (simulated)", "is retired", "ECC")
    assert set(compute.run_all_on_devices(calls(own_device, count=10))) == {1}
    scene.wait_for_devices(1)


def test_a_device_whose_workers_die_is_retired(scene):
    for death in range(1, STRIKES + 1):
        scene.wait_for_devices(0, 1)
        assert compute.run_all_on_devices(calls(die_on, 0, count=8)) == list(range(8))
        scene.wait_for_line("is lost", times=death)
    scene.wait_for_line("GPU 0 (simulated)", "is retired")
    scene.wait_for_devices(1)


def test_a_strange_worker_is_left_unused_and_one_that_leaves_of_itself_is_told_of(scene):
    async def come() -> Nanny:
        return await Nanny(
            scene.cluster.scheduler_address, nthreads=1, name="stranger",
            security=scene.cluster.security,
        )

    stranger = scene.client.sync(come)
    try:
        scene.wait_for_line("worker stranger is left unused", "offers no device")
        assert len(scene.pool.workers) == 2
    finally:
        scene.client.sync(stranger.close)
    leaving = scene.pool.workers[0]
    scene.client.retire_workers([leaving.address])
    scene.wait_for_line(f"worker {leaving.name} has left")
