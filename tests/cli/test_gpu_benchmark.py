"""The script for GPUs does all its work on a CPU too, on small sizes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


def run(*arguments):
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], check=False, capture_output=True, text=True,
        timeout=280,
    )


@pytest.mark.slow
def test_every_part_prints_its_figures_and_keeps_them(tmp_path):
    done = run("--device", "cpu", "--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    body = json.loads((tmp_path / "gpu.json").read_text())
    figures = {(each["name"], each["unit"]): each["value"] for each in body["measurements"]}
    assert figures["tiny, policy only", "positions/s"] > 0
    assert figures["tiny: training", "samples/s"] > 0
    assert figures["tiny: training in fp16 over bf16", "times"] > 0
    for part in ("neurons", "inference", "peers", "training", "self_play"):
        assert f"\n{part} (" in done.stdout


def test_a_part_that_is_not_there_is_named(tmp_path):
    done = run("--device", "cpu", "--only", "training", "everything", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "everything" in done.stderr


def test_a_gpu_that_is_not_there_is_named(tmp_path):
    done = run("--device", "cuda:99", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "cuda:99" in done.stderr
    assert "Traceback" not in done.stderr
