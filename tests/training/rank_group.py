"""Groups of real rank processes, and what they came to."""

import json
import os
from dataclasses import asdict
from pathlib import Path

from rank_driver import Outcome
from safetensors.torch import load_file

from chess_snn.training.rank_launch import run_ranks

HERE = Path(__file__).parent


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
    return {"PYTHONPATH": path}


def run_group(folder, shard, cases, size, **values):
    """Run all ranks to their end."""
    file = write_task(folder, shard, cases, **values)
    run_ranks(
        size, "rank_driver", [str(file)], environment=driver_environment()
    )


def read_outcomes(folder, name, size):
    """Results of each rank of a group in the case of that name."""
    outcomes = []
    for rank in range(size):
        stem = folder / f"{name}-{rank}"
        body = json.loads(stem.with_suffix(".json").read_text())
        outcomes.append(Outcome(**body, state=load_file(stem.with_suffix(".safetensors"))))
    return outcomes
