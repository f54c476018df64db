"""A process in its place: bound to cores, its device in the environment, and out of it again."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from chess_snn.campaign.machine.slots import WorkerSlot
from chess_snn.devices import Device

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
