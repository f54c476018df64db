"""How busy devices are: each counted once, and averaged over looks."""

from dataclasses import replace

import pytest
from distributed.diagnostics import nvml
from distributed.system_monitor import SystemMonitor

from chess_snn.campaign.machine.slots import WorkerSlot
from chess_snn.campaign.viewing.events import WorkerProgress
from chess_snn.devices import Device, processor
from chess_snn.tasks.cluster.devices import STRIKES, DeviceHealth, PoolWorker, UseTotals
from chess_snn.tasks.cluster.worker_pool import _state
from chess_snn.tasks.progress import WorkerBoard

pytestmark = pytest.mark.orchestration
pytest.importorskip("distributed")


GIB = 1 << 30


def on_gpu(number=0, index=0, **changes):
    """A worker on a GPU of machine a, and what it is doing."""
    device = Device("cuda", index, str(index), "H200", 80 * GIB)
    slot = WorkerSlot(number, "a", device, (), 1, GIB, ())
    state = WorkerProgress(
        slot.name, slot.site, "", 0, 0.0, 0.1, cores=1.0, memory_bytes=GIB, gpu_share=0.9,
        gpu_memory_bytes=20 * GIB, gpu_memory_total_bytes=80 * GIB,
    )
    return PoolWorker("tcp://a:1", slot, host_cores=64), replace(state, **changes)


def on_cpu(number=0, **changes):
    """A worker on the processor of machine b."""
    slot = WorkerSlot(number, "b", processor(), (), 1, GIB, ())
    state = WorkerProgress(
        slot.name, slot.site, "", 0, 0.0, 0.1, cores=3.0, memory_bytes=GIB, gpu_share=None
    )
    return PoolWorker("tcp://b:1", slot, host_cores=8), replace(state, **changes)


def use_of(*looks):
    totals = UseTotals()
    for states in looks:
        totals = totals.after(states)
    return UseTotals().until(totals)


def test_workers_of_one_gpu_see_the_same_and_count_once():
    use = use_of([
        on_gpu(), on_gpu(1), on_gpu(2, 1, gpu_share=0.5, gpu_memory_bytes=10 * GIB),
        on_cpu(),  # beside GPUs, processors are not counted
    ])
    assert (use.count, use.utilisation, use.memory_gib) == (2, pytest.approx(0.7), 15)


def test_workers_of_one_processor_are_added_up():
    use = use_of([on_cpu(), on_cpu(1, cores=1.0, memory_bytes=3 * GIB)])
    assert (use.count, use.utilisation, use.memory_gib) == (1, 0.5, 4)
    assert use_of([on_cpu(cores=9.5)]).utilisation == 1.0


def test_means_are_of_the_time_between():
    before = totals = UseTotals().after([on_cpu(cores=0.0)])
    assert before.until(totals) is None, "nobody looked"
    for cores in (2.0, 4.0):
        totals = totals.after([on_cpu(cores=cores)])
    assert before.until(totals).utilisation == pytest.approx(3 / 8)


def test_a_gpu_that_does_not_tell_is_not_idle():
    assert use_of([on_gpu(gpu_share=None, gpu_memory_bytes=None)]) is None


def test_dasks_names_of_a_gpus_figures_are_known_bug(monkeypatch):
    """They were looked for under others, and never shown."""
    monkeypatch.setattr(nvml, "device_get_count", lambda: 1)
    monkeypatch.setattr(nvml, "one_time", lambda: {"name": "H200", "memory-total": 80 * GIB})
    monkeypatch.setattr(
        nvml, "real_time", lambda: {"utilization": 90, "memory-used": 20 * GIB}
    )
    monitor = SystemMonitor()
    monitor.update()
    worker, _ = on_gpu()
    state = _state(worker, 0.1, monitor.recent())
    assert (state.gpu_share, state.gpu_memory_bytes, state.gpu_memory_total_bytes) == (
        0.9, 20 * GIB, 80 * GIB
    )
    # One that runs beside the GPUs would be told the first one's figures.
    beside = _state(on_cpu()[0], 0.1, monitor.recent())
    assert (beside.gpu_share, beside.gpu_memory_bytes) == (None, None)


# Which device is left out, on paper.


THREE = {"GPU 0", "GPU 1", "GPU 2"}


def test_a_device_that_fails_again_and_again_is_retired_once():
    health = DeviceHealth()
    assert [health.failed("GPU 1", THREE) for _ in range(STRIKES)] == [False, False, True]
    assert not health.failed("GPU 1", THREE)
    assert health.retired == {"GPU 1"}


def test_a_success_takes_all_strikes_away():
    health = DeviceHealth()
    for _ in range(10):
        assert not health.failed("GPU 1", THREE)
        assert not health.failed("GPU 1", THREE)
        health.succeeded("GPU 1")
    assert health.retired == set()


def test_strikes_of_one_device_are_not_those_of_another():
    health = DeviceHealth()
    for device in sorted(THREE) * (STRIKES - 1):
        assert not health.failed(device, THREE)


def test_the_last_device_is_never_retired():
    health = DeviceHealth()
    assert not any(health.failed("GPU 0", {"GPU 0"}) for _ in range(10))
    both = {"GPU 0", "GPU 1"}
    assert health.failed("GPU 0", both)
    assert not any(health.failed("GPU 1", both) for _ in range(10))


def test_a_device_whose_workers_are_all_dead_at_the_moment_may_be_retired():
    health = DeviceHealth()
    for _ in range(STRIKES - 1):
        health.failed("GPU 0", {"GPU 1"})
    assert health.failed("GPU 0", {"GPU 1"})


# Games by worker, from events that may come late, twice or not at all.


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def event(done, worker="a/cpu-0", part="shard 0", stage="self-play", total=100):
    return {"iteration": 2, "stage": stage, "part": part, "done": done, "total": total,
            "sender": worker}


def state(name="a/cpu-0", quiet_s=0.4):
    return WorkerProgress(name, "the processor of a", "", 0, 0.0, quiet_s, 0.98, 1 << 29, None)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def board(clock):
    return WorkerBoard(lambda: [state("a/cpu-1", 7.0), state()], clock)


def test_games_are_counted_by_worker_and_paced_over_the_last_minute(board, clock):
    for done in range(10, 101, 10):
        board.handle_event(event(done))
        clock.now += 2.0
    first, second = board.progress()
    assert (first.name, first.games, second.games) == ("a/cpu-0", 100, 0)
    assert first.games_per_s == pytest.approx(90 / 20)
    clock.now += 1000.0
    assert board.progress()[0].games_per_s == 0.0
    assert board.progress()[0].games == 100


@pytest.mark.parametrize(("told", "games"), [
    ([("shard 0", 10), ("shard 0", 10), ("shard 0", 40), ("shard 0", 40)], 40),  # lost, and twice
    ([("shard 0", 30), ("shard 0", 5), ("shard 0", 20)], 50),  # begun again, and played on
    ([("shard 0", 50), ("shard 1", 10)], 60),
])
def test_games_are_those_that_were_played(board, told, games):
    for part, done in told:
        board.handle_event(event(done, part=part))
    assert board.progress()[0].games == games


def test_steps_are_no_games(board):
    board.handle_event(event(200, stage="training", part="steps", total=400))
    (worker, _) = board.progress()
    assert worker.games == 0
    assert worker.doing == "iteration 2 training, steps: 200 of 400"


def test_who_has_finished_has_nothing_to_do(board):
    board.handle_event(event(99))
    assert board.progress()[0].doing == "iteration 2 self-play, shard 0: 99 of 100"
    board.handle_event(event(100))
    assert board.progress()[0].doing == ""


def test_the_last_sign_of_life_is_the_newer_of_both(board, clock):
    assert [worker.quiet_s for worker in board.progress()] == [0.4, 7.0]
    board.handle_event(event(1, worker="a/cpu-1"))
    clock.now += 3.0
    assert [worker.quiet_s for worker in board.progress()] == [0.4, 3.0]
    clock.now += 10.0
    assert [worker.quiet_s for worker in board.progress()] == [0.4, 7.0]


def test_a_worker_that_has_left_is_told_of_no_more(clock):
    there = [state()]
    board = WorkerBoard(lambda: there, clock)
    board.handle_event(event(10))
    there.clear()
    assert board.progress() == []
    there.append(state())
    assert board.progress()[0].games == 10
