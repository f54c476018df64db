"""How busy devices are: each counted once, and averaged over looks."""

from dataclasses import replace

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("distributed")

from distributed.diagnostics import nvml  # noqa: E402
from distributed.system_monitor import SystemMonitor  # noqa: E402

from chess_snn.campaign.machine.slots import WorkerSlot  # noqa: E402
from chess_snn.devices import Device, processor  # noqa: E402
from tasks.cluster.devices import UseTotals, WorkerState  # noqa: E402
from tasks.cluster.worker_pool import PoolWorker, _state  # noqa: E402

GIB = 1 << 30
ON_GPU = WorkerState(
    "a/gpu0-0", "GPU 0 of a", 0.1, cores=1.0, memory_bytes=GIB, gpu_share=0.9,
    gpu_memory_bytes=20 * GIB, gpu_memory_total_bytes=80 * GIB, host="a", host_cores=64,
    is_on_gpu=True,
)
ON_CPU = WorkerState(
    "b/cpu-0", "the processor of b", 0.1, cores=3.0, memory_bytes=GIB, host="b", host_cores=8
)


def use_of(*looks):
    totals = UseTotals()
    for states in looks:
        totals = totals.after(states)
    return UseTotals().until(totals)


def test_workers_of_one_gpu_see_the_same_and_count_once():
    use = use_of([
        ON_GPU, replace(ON_GPU, name="a/gpu0-1"),
        replace(ON_GPU, name="a/gpu1-2", device="GPU 1 of a", gpu_share=0.5,
                gpu_memory_bytes=10 * GIB),
        ON_CPU,  # beside GPUs, processors are not counted
    ])
    assert (use.count, use.utilisation, use.memory_gib) == (2, pytest.approx(0.7), 15)


def test_workers_of_one_processor_are_added_up():
    use = use_of([ON_CPU, replace(ON_CPU, name="b/cpu-1", cores=1.0, memory_bytes=3 * GIB)])
    assert (use.count, use.utilisation, use.memory_gib) == (1, 0.5, 4)
    assert use_of([replace(ON_CPU, cores=9.5)]).utilisation == 1.0


def test_means_are_of_the_time_between():
    before = totals = UseTotals().after([replace(ON_CPU, cores=0.0)])
    assert before.until(totals) is None, "nobody looked"
    for cores in (2.0, 4.0):
        totals = totals.after([replace(ON_CPU, cores=cores)])
    assert before.until(totals).utilisation == pytest.approx(3 / 8)


def test_a_gpu_that_does_not_tell_is_not_idle():
    assert use_of([replace(ON_GPU, gpu_share=None, gpu_memory_bytes=None)]) is None


def test_dasks_names_of_a_gpus_figures_are_known_bug(monkeypatch):
    """They were looked for under others, and never shown."""
    monkeypatch.setattr(nvml, "device_get_count", lambda: 1)
    monkeypatch.setattr(nvml, "one_time", lambda: {"name": "H200", "memory-total": 80 * GIB})
    monkeypatch.setattr(
        nvml, "real_time", lambda: {"utilization": 90, "memory-used": 20 * GIB}
    )
    monitor = SystemMonitor()
    monitor.update()
    slot = WorkerSlot(
        0, "a", Device("cuda", 0, "0", "H200", 80 * GIB), (), 1, GIB, ("play", "train"), ()
    )
    worker = PoolWorker("tcp://a:1", slot, host_cores=64)
    state = _state(worker, 0.1, monitor.recent())
    assert (state.gpu_share, state.gpu_memory_bytes, state.gpu_memory_total_bytes) == (
        0.9, 20 * GIB, 80 * GIB
    )
    # One that runs beside the GPUs would be told the first one's figures.
    beside = _state(
        replace(worker, slot=replace(slot, device=processor())), 0.1, monitor.recent()
    )
    assert (beside.gpu_share, beside.gpu_memory_bytes) == (None, None)
