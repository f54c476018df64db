"""Devices that are found and chosen, and a process in its slot on one."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from chess_snn.campaign.machine.slots import WorkerSlot
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


def gpus(count: int) -> list[Device]:
    return [Device("cuda", i, str(i), "NVIDIA H200", 141 << 30) for i in range(count)]


def test_all_gpus_are_taken_unless_some_are_named():
    assert choose_devices("auto", (), gpus(3)) == gpus(3)
    assert choose_devices("auto", (2, 0), gpus(3)) == [gpus(3)[2], gpus(3)[0]]


def test_without_gpus_the_processor_works():
    (device,) = choose_devices("auto", (), [])
    assert not device.is_gpu
    assert device.shares_cores
    assert choose_devices("cpu", (), gpus(2)) == [device]


def test_a_gpu_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(ConfigError) as error:
        choose_devices("auto", (0, 7), gpus(2))
    assert str(error.value).startswith(
        "there is no GPU 7: this machine has 0 (NVIDIA H200), 1 (NVIDIA H200);"
    )


@pytest.mark.parametrize(("choice", "wanted"), [("auto", (7,)), ("cuda", (0,)), ("cuda", ())])
def test_a_gpu_on_a_machine_without_any_is_an_error(choice, wanted):
    with pytest.raises(ConfigError):
        choose_devices(choice, wanted, [])


def test_gpus_and_the_processor_alone_contradict_each_other():
    with pytest.raises(ConfigError, match=r"execution\.gpus = 1 .* execution\.device"):
        choose_devices("cpu", (1,), gpus(2))


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
    assert [str(gpu) for gpu in found] == ["GPU 0 (simulated)", "GPU 1 (simulated)"]
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
    num_threads=1, memory_bytes=1 << 30, roles=("play", "train"), machine_gpus=(),
)


def told_by(slot: WorkerSlot) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | slot.environment(),
        capture_output=True, text=True, check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.skipif(not CORES, reason="this system binds no process to cores")
def test_a_worker_keeps_to_its_core_and_trains_on_all():
    told = told_by(PLACE)
    assert told["name"] == "box-a/cpu-3"
    assert told["devices"] == ["cpu"]
    bound = {"own": [CORES[-1]], "counted": len(CORES), "threads": [[CORES[-1]]], "gpus": ""}
    assert told["inside"] == told["after"] == bound
    assert told["whole"] == bound | {"own": CORES, "threads": [CORES]}


@pytest.mark.skipif(not CORES, reason="this system binds no process to cores")
def test_a_worker_keeps_to_its_gpu_while_it_trains_bug():
    """It saw all GPUs then, and one that had not opened its own took the first for good."""
    gpu = Device("cuda", 1, "GPU-b", "NVIDIA H200", 1)
    told = told_by(replace(PLACE, device=gpu, machine_gpus=("GPU-a", "GPU-b")))
    assert told["name"] == "box-a/gpu1-3"
    assert {told[when]["gpus"] for when in ("inside", "whole", "after")} == {"GPU-b"}
