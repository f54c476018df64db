"""Groups of real rank processes, started without an agent, and what they came to."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from rank_driver import Outcome
from safetensors.torch import load_file

HERE = Path(__file__).parent
TIMEOUT_S = 240.0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_task(folder, shard, cases, **values):
    """The file that a rank is given."""
    folder.mkdir(exist_ok=True)
    file = folder / "task.json"
    body = {"shard": str(shard), "out": str(folder), "cases": [asdict(c) for c in cases]}
    file.write_text(json.dumps(body | values))
    return file


def driver_environment():
    """For processes that import the driver."""
    repository = HERE.parents[1]
    path = os.pathsep.join([str(repository), str(HERE), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def start_rank(file, rank, size, port, **variables):
    return subprocess.Popen(
        [sys.executable, "-m", "rank_driver", str(file)],
        env=driver_environment() | {
            "RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        } | variables,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )


def run_group(folder, shard, cases, size, **values):
    """Run all ranks to their end; their exit codes and what they said on standard error."""
    file, port = write_task(folder, shard, cases, **values), free_port()
    ranks = [start_rank(file, rank, size, port) for rank in range(size)]
    try:
        told = [process.communicate(timeout=TIMEOUT_S)[1] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    return [process.returncode for process in ranks], told


def read_outcomes(folder, case, size):
    """What each rank of a group came to."""
    outcomes = []
    for rank in range(size):
        stem = folder / f"{case.name}-{rank}"
        body = json.loads(stem.with_suffix(".json").read_text())
        outcomes.append(Outcome(**body, state=load_file(stem.with_suffix(".safetensors"))))
    return outcomes
