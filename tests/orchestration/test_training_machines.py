"""Which machines train together: each once, GPUs first, and those with least to do."""

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("distributed")

from chess_snn.campaign.machine.slots import WorkerSlot  # noqa: E402
from chess_snn.devices import Device, processor  # noqa: E402
from tasks.cluster.worker_pool import PoolWorker  # noqa: E402
from tasks.train_together import choose_machines  # noqa: E402


def member(host: str, number: int = 0, *, gpu: bool = True) -> PoolWorker:
    device = Device("cuda", number, str(number), "H200", 1 << 37) if gpu else processor()
    place = WorkerSlot(number, host, device, (), 1, 1 << 30, ("play", "train"), ())
    return PoolWorker(f"tls://{host}:{9000 + number}", place)


def names(members: list[PoolWorker]) -> list[str]:
    return [member.name for member in members]


def test_of_each_machine_one_worker_is_taken():
    workers = [member(host, number) for host in ("box-b", "box-a") for number in (1, 0)]
    assert names(choose_machines(workers, {}, 2)) == ["box-a/gpu0-0", "box-b/gpu0-0"]
    assert names(choose_machines(workers, {}, 5)) == ["box-a/gpu0-0", "box-b/gpu0-0"]
    assert choose_machines([], {}, 2) == []


def test_machines_and_workers_with_least_to_do_are_taken_first():
    workers = [member("box-a"), member("box-a", 1), member("box-b"), member("box-c")]
    tasks = {"tls://box-a:9000": ("x", "y"), "tls://box-a:9001": ("x",), "tls://box-b:9000": "xyz"}
    assert names(choose_machines(workers, tasks, 2)) == ["box-a/gpu1-1", "box-c/gpu0-0"]


def test_gpus_and_processors_do_not_train_together():
    workers = [member("box-a", gpu=False), member("box-b"), member("box-c", gpu=False)]
    assert names(choose_machines(workers, {}, 3)) == ["box-b/gpu0-0"]
    without = [each for each in workers if each.shares_cores]
    assert names(choose_machines(without, {}, 3)) == ["box-a/cpu-0", "box-c/cpu-0"]
