"""What a campaign holds does not grow with the iterations behind it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("memory_driver.py")
ITERATIONS = 500
EVERY = 50
SETTLED = 150
"""Iterations after which caches, pools and compiled kernels are there."""
MOST_GROWTH_MIB = 16.0
"""Over the 350 iterations after that; metrics that are kept of each of them take 2."""


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_memory_is_flat_over_500_iterations(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(DRIVER), str(tmp_path / "campaign"), str(ITERATIONS), str(EVERY)],
        capture_output=True, text=True, timeout=3500, check=False,
        env=os.environ | {
            "PYTHONPATH": os.pathsep.join([str(Path.cwd()), str(DRIVER.parents[1])]),
            "OMP_NUM_THREADS": "1",
        },
    )
    assert run.returncode == 0, run.stderr[-3000:]
    rows = {row["iteration"]: row for row in map(json.loads, run.stdout.splitlines())}
    assert len(rows) == ITERATIONS // EVERY
    settled, last = rows[SETTLED], rows[ITERATIONS]
    assert last["mib"] - settled["mib"] < MOST_GROWTH_MIB, run.stdout
    assert last["files"] <= settled["files"] + 2, run.stdout
    assert last["threads"] <= settled["threads"] + 2, run.stdout
