"""How many workers play and how many processes train on machines that are values."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from chess_snn.campaign import load_config
from chess_snn.campaign.machine.slots import Machine, WorkerSlot
from chess_snn.campaign.machine.training_launch import choose_ranks, training_gpus
from chess_snn.campaign.machine.workers import plan_workers, worker_bytes
from chess_snn.cores import num_cores
from chess_snn.devices import (
    ASSIGNED_KIND,
    SIMULATED_GPUS,
    Device,
    choose_devices,
    find_devices,
    gpu_tokens,
    name_devices,
    processor,
    visible_gpus,
)
from chess_snn.errors import ConfigError

GIB = 1 << 30
GAMES = 1000


def gpus(count: int, memory_bytes: int = 141 * GIB) -> tuple[Device, ...]:
    return tuple(
        Device("cuda", i, f"GPU-{i}", "NVIDIA H200", memory_bytes) for i in range(count)
    )


def machine(num_gpus: int = 0, cores: int = 16, memory_gib: float = 256.0) -> Machine:
    return Machine(gpus(num_gpus), tuple(range(cores)), int(memory_gib * GIB), "box-a")


def config(*settings: str):
    return load_config(settings=[f"execution.{setting}" for setting in settings])


def plan(where: Machine, *settings: str, num_games: int = GAMES):
    return plan_workers(config(*settings), where, num_games)


def devices_of(plan) -> list[int]:
    return [slot.device.index for slot in plan.slots]


WITHOUT_ONE = "4 GPUs, 1 of them without a worker: "


@pytest.mark.parametrize(("where", "settings", "num_games", "devices", "note"), [
    (machine(2), ["workers=9"], GAMES, [0, 1] * 4, "9 workers on 2 devices: lowered to 8, 4 each"),
    (machine(4), ["workers=3"], GAMES, [0, 1, 2], "3 workers on 4 devices: 1 of them has no work"),
    # By rule two share a GPU where each has a core, and the GPU has memory for both.
    (machine(8, cores=64), [], GAMES, [*range(8)] * 2, ""),
    (machine(8, cores=15), [], GAMES, [*range(8)], ""),
    (machine(8, cores=4), [], GAMES, [*range(8)], ""),
    (Machine(gpus(1, 6 * GIB), tuple(range(8)), 64 * GIB, "box-a"), [], GAMES, [0], ""),
    # There are no more than games, and as many on each device.
    (machine(4, cores=64), [], 7, [0, 1, 2, 3], ""),
    (machine(4, cores=64), [], 3, [0, 1, 2], WITHOUT_ONE + "an iteration has 3 games"),
    # There are no more than fit into memory.
    (machine(2, cores=64), [], GAMES, [0, 1] * 2, ""),
    (machine(2, cores=64, memory_gib=6.5), [], GAMES, [0, 1], ""),
    (machine(4, cores=64, memory_gib=6.5), [], GAMES, [0, 1, 2],
     WITHOUT_ONE + "memory has room for 3 workers"),
])
def test_each_device_has_as_many_workers_as_there_is_work_and_room_for(
    where, settings, num_games, devices, note
):
    found = plan(where, *settings, num_games=num_games)
    assert devices_of(found) == devices
    assert [text.startswith(note) for text in found.notes] == [True] * bool(note)


def test_workers_on_chosen_gpus():
    found = plan(machine(6), "workers=9", "gpus=[0,2,5]")
    assert devices_of(found) == [0, 2, 5] * 3
    assert [slot.name for slot in found.slots[1:4]] == [
        "box-a/gpu2-1", "box-a/gpu5-2", "box-a/gpu0-3",
    ]
    assert found.slots[3].site == found.slots[0].site
    assert found.slots[1].environment()["CUDA_VISIBLE_DEVICES"] == "GPU-2"
    assert found.slots[1].machine_gpus == ("GPU-0", "GPU-2", "GPU-5")


@pytest.mark.parametrize(("machines", "num_gpus", "shards"), [
    (1, 1, 2), (1, 2, 4), (1, 8, 16), (2, 8, 32),
])
def test_the_gpu_preset_gives_every_gpu_work_in_every_iteration(machines, num_gpus, shards):
    gpus = machines * num_gpus
    preset = load_config("gpu", settings=[f"self_play.games_per_iteration={1024 * gpus}"])
    box = machine(num_gpus, cores=16 * num_gpus, memory_gib=128 * num_gpus)
    found = plan_workers(preset, box, preset.self_play.games_per_iteration)
    assert devices_of(found) == [*range(num_gpus)] * 2
    assert found.notes == ()
    workers = machines * len(found.slots)
    assert preset.self_play.num_shards(workers) == shards
    assert shards % workers == 0
    games = preset.self_play.games_per_iteration // shards
    assert games == preset.self_play.games_per_shard


@pytest.mark.parametrize("preset", ["smoke", "cpu", "gpu", "smoke-2048", "cpu-2048"])
def test_every_preset_gives_every_worker_work(preset):
    settings = load_config(preset).self_play
    for workers in (1, 2, 3, 4, 8, 16, 32):
        shards = settings.num_shards(workers)
        assert shards % workers == 0
        assert shards * settings.games_per_shard >= settings.games_per_iteration
        assert settings.games_per_iteration / shards >= 8


@pytest.mark.parametrize(("where", "settings", "cores", "num_threads"), [
    (machine(cores=num_cores()), ["device=cpu"], [(i,) for i in range(num_cores())], 1),
    (machine(1, cores=8), ["workers=4"], [(0, 1), (2, 3), (4, 5), (6, 7)], 2),
    (machine(cores=2), ["workers=5"], [(0,), (1,), (0,), (1,), (0,)], 1),
    (machine(cores=4), ["workers=2", "bind_cores=false"], [(), ()], 2),
])
def test_workers_share_cores_and_memory_evenly(where, settings, cores, num_threads):
    slots = plan(where, *settings).slots
    assert [slot.cores for slot in slots] == cores
    assert {slot.num_threads for slot in slots} == {num_threads}
    assert {slot.memory_bytes for slot in slots} == {int(256 * GIB * 0.9) // len(slots)}


def test_more_workers_than_memory_is_an_error_that_says_how_many_fit():
    with pytest.raises(ConfigError, match="64"):
        plan(machine(memory_gib=4, cores=64), "workers=64")


def test_bounds_of_workers_that_come_to_more_than_the_memory_are_an_error():
    with pytest.raises(ConfigError, match=r"8\.0 GiB"):
        plan(machine(memory_gib=16), "workers=4", "worker_memory_mib=8192")
    found = plan(machine(memory_gib=16), "workers=2", "worker_memory_mib=1024")
    assert {slot.memory_bytes for slot in found.slots} == {GIB}


def test_a_worker_with_longer_searches_needs_more_memory():
    cpu = plan(machine()).slots[0].device
    long = load_config(settings=["search.simulations_last=800", "self_play.games_per_shard=256"])
    assert worker_bytes(long, cpu) > worker_bytes(load_config(), cpu) + 50 * (1 << 20)


@pytest.mark.parametrize(("settings", "named"), [
    (["gpus=[0,0]"], r"execution\.gpus"), (["gpus=[-1]"], r"execution\.gpus"),
    (["training_backend=nccl", "device=cpu"], r"execution\.device"),
])
def test_settings_that_contradict_each_other_are_refused(settings, named):
    with pytest.raises(ConfigError, match=named):
        config(*settings)


# How many processes train: one for each GPU, and no more than there are micro-batches.


def training_config(*settings):
    return load_config(settings=["training.batch_size=1024", "training.micro_batch=128", *settings])


@pytest.mark.parametrize(("settings", "num_gpus", "number"), [
    ([], 0, 1), ([], 1, 1), ([], 2, 2), ([], 6, 6), ([], 8, 8),
    (["training.micro_batch=512"], 8, 2), (["training.micro_batch=1024"], 8, 1),
    (["execution.training_ranks=3"], 8, 3), (["execution.training_ranks=2"], 0, 2),
    (["execution.training_backend=nccl"], 2, 2),
])
def test_every_gpu_that_has_a_micro_batch_trains_by_itself(settings, num_gpus, number):
    assert choose_ranks(training_config(*settings), num_gpus).number == number


def test_more_gpus_than_micro_batches_leave_some_idle_and_say_so():
    choice = choose_ranks(training_config("training.micro_batch=512"), 8)
    assert "training.micro_batch" in choice.why


def test_nccl_needs_gpus():
    wanted = training_config("execution.training_backend=nccl")
    with pytest.raises(ConfigError, match="training_backend"):
        choose_ranks(wanted, 0)


def test_the_gpus_are_those_that_execution_names(monkeypatch):
    monkeypatch.setenv(SIMULATED_GPUS, "8")
    assert len(training_gpus(training_config())) == 8
    assert training_gpus(training_config("execution.gpus=[2,5]")) == ("2", "5")
    assert training_gpus(training_config("execution.device=cpu")) == ()
    with pytest.raises(ConfigError, match="GPU 9"):
        training_gpus(training_config("execution.gpus=[9]"))


# Devices that are found and chosen, and a process in its slot on one.


def test_all_gpus_are_taken_unless_some_are_named():
    three = list(gpus(3))
    assert choose_devices("auto", (), three) == three
    assert choose_devices("auto", (2, 0), three) == [three[2], three[0]]


def test_without_gpus_the_processor_works():
    (device,) = choose_devices("auto", (), [])
    assert not device.is_gpu
    assert device.shares_cores
    assert choose_devices("cpu", (), gpus(2)) == [device]


@pytest.mark.parametrize(("choice", "wanted", "num_gpus", "named"), [
    ("auto", (0, 7), 2, "GPU 7"), ("auto", (7,), 0, ""), ("cuda", (0,), 0, ""), ("cuda", (), 0, ""),
    ("cpu", (1,), 2, r"execution\.gpus"),
])
def test_gpus_that_are_not_there_or_not_to_be_used_are_refused(choice, wanted, num_gpus, named):
    with pytest.raises(ConfigError, match=named):
        choose_devices(choice, wanted, gpus(num_gpus))


@pytest.mark.parametrize(("visible", "tokens"), [
    (None, ["0", "1"]), ("3, 5", ["3", "5"]), ("GPU-8f,GPU-11,GPU-77", ["GPU-8f", "GPU-11"]),
])
def test_gpus_keep_the_names_that_cuda_visible_devices_has_for_them(visible, tokens):
    assert gpu_tokens(visible, 2) == tokens


def test_devices_are_named_in_runs():
    eight, other = gpus(8), Device("cuda", 9, "9", "NVIDIA L4", 24 << 30)
    assert name_devices(eight) == "GPUs 0-7 (NVIDIA H200)"
    assert name_devices([eight[3], eight[3]]) == "GPU 3 (NVIDIA H200)"
    found = name_devices([other, *eight[4:6], eight[0], eight[2]])
    assert found == "GPUs 0, 2, 4-5 (NVIDIA H200) and GPU 9 (NVIDIA L4)"
    assert name_devices([processor()]) == "the processor"


def test_simulated_gpus_are_dealt_out_and_compute_on_the_processor(monkeypatch):
    monkeypatch.setenv(SIMULATED_GPUS, "2")
    found = visible_gpus()
    assert len(found) == 2
    assert all(gpu.is_gpu and gpu.shares_cores for gpu in found)
    assert find_devices("auto") == find_devices("cuda") == ["cpu"]


@pytest.mark.parametrize("text", ["two", "-1", "", "4096"])
def test_a_wrong_number_of_simulated_gpus_is_an_error(monkeypatch, text):
    monkeypatch.setenv(SIMULATED_GPUS, text)
    with pytest.raises(ConfigError, match=SIMULATED_GPUS):
        visible_gpus()


def test_a_worker_that_was_given_the_processor_looks_for_no_gpu(monkeypatch):
    monkeypatch.setenv(ASSIGNED_KIND, "cpu")
    assert find_devices("auto") == find_devices("cuda") == ["cpu"]


# A process in its place: bound to cores, its device in the environment, and out of it again.


CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []

PROGRAM = """
import json, os, threading
from chess_snn.campaign.machine.slots import own_slot
from chess_snn.cores import bind_to, num_cores, unbound
from chess_snn.devices import find_devices

place = own_slot()
threading.Thread(target=threading.Event().wait, daemon=True).start()
bind_to(place.cores)

def seen():
    return {
        "own": sorted(os.sched_getaffinity(0)), "counted": num_cores(),
        "threads": sorted({tuple(sorted(os.sched_getaffinity(int(t))))
                           for t in os.listdir("/proc/self/task")}),
        "gpus": os.environ["CUDA_VISIBLE_DEVICES"],
    }

inside = seen()
with unbound():
    whole = seen()
print(json.dumps({
    "name": place.name, "devices": find_devices("auto") if place.device.kind == "cpu" else None,
    "inside": inside, "whole": whole, "after": seen(),
}))
"""


PLACE = WorkerSlot(
    number=3, host="box-a", device=Device("cpu", 0, "", "", 0), cores=tuple(CORES[-1:]),
    num_threads=1, memory_bytes=1 << 30, machine_gpus=(),
)


def told_by(slot: WorkerSlot) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | slot.environment(),
        capture_output=True, text=True, check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not CORES, reason="this system binds no process to cores")
def test_a_worker_keeps_to_its_core_and_trains_on_all():
    told = told_by(PLACE)
    assert told["name"] == "box-a/cpu-3"
    assert told["devices"] == ["cpu"]
    bound = {"own": [CORES[-1]], "counted": len(CORES), "threads": [[CORES[-1]]], "gpus": ""}
    assert told["inside"] == told["after"] == bound
    assert told["whole"] == bound | {"own": CORES, "threads": [CORES]}


@pytest.mark.slow
@pytest.mark.skipif(not CORES, reason="this system binds no process to cores")
def test_a_worker_keeps_to_its_gpu_while_it_trains_bug():
    """It saw all GPUs then, and one that had not opened its own took the first for good."""
    gpu = Device("cuda", 1, "GPU-b", "NVIDIA H200", 1)
    told = told_by(replace(PLACE, device=gpu, machine_gpus=("GPU-a", "GPU-b")))
    assert told["name"] == "box-a/gpu1-3"
    assert {told[when]["gpus"] for when in ("inside", "whole", "after")} == {"GPU-b"}
