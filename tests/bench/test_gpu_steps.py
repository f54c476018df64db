"""A run in steps keeps what each part measured, whatever happens to the others."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from benchmarks import gpu
from benchmarks.gpu_bench import GpuBench
from benchmarks.gpu_steps import MOST_STEP_S, STEPS, Task, run_tasks, tasks_of
from benchmarks.report import Report
from chess_snn.errors import UsageError

ROOT = Path(__file__).parents[2]
ONLY_DEPENDENCIES = """
import re, runpy, sys
from importlib import metadata
from importlib.machinery import PathFinder

allowed, waiting = set(), ["chess-snn", "spikingjelly", "snntorch"]
while waiting:
    name = re.split(r"[^\\w.-]", waiting.pop())[0].lower().replace("_", "-")
    if name not in allowed:
        allowed.add(name)
        try:
            required = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        waiting += [each for each in required if "extra ==" not in each]
of_module = metadata.packages_distributions()

class Dependencies(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        owners = {each.lower().replace("_", "-") for each in of_module.get(name.split(".")[0], [])}
        return super().find_spec(name, path, target) if not owners or owners & allowed else None

sys.meta_path[sys.meta_path.index(PathFinder)] = Dependencies
assert "prefect" not in allowed and "torch" in allowed
sys.argv = ["benchmarks/gpu.py", *sys.argv[1:]]
runpy.run_path("benchmarks/gpu.py", run_name="__main__")
"""
"""Runs the file with no package but chess-snn's dependencies, and peers, that can be imported."""


def python(code, *arguments, folder="{out}"):
    return Task(arguments[0], 30.0, ("-c", code, folder, *arguments[1:]))


def files_of(archive):
    with tarfile.open(archive) as packed:
        return {member.name for member in packed if member.isfile()}


def test_the_limits_of_a_step_fit_into_ten_minutes():
    assert sorted(STEPS) == [1, 2, 3]
    for step in STEPS:
        assert sum(task.limit_s for task in STEPS[step]) < MOST_STEP_S
        for task in tasks_of(step, "cuda:1"):
            assert not any("{device}" in each for each in task.arguments)
    parts = {name for tasks in STEPS.values() for task in tasks for name in task.arguments}
    assert set(gpu.PARTS) <= parts


def test_a_task_that_fails_or_hangs_leaves_the_results_of_the_others(tmp_path):
    write = "import pathlib, sys; pathlib.Path(sys.argv[1], 'a.json').write_text('1')"
    hang = Task("hangs", 1.0, ("-c", "print('begun', flush=True); import time; time.sleep(60)"))
    report = Report("gpu")
    failed = run_tasks(report, [
        python(write, "writes"), python("raise SystemExit(3)", "fails"), hang,
        python("raise SystemExit(1)", "misses a bar"),
        Task("fails as tests do", 30.0, ("-c", "raise SystemExit(1)"), may_miss_bars=False),
    ], tmp_path / "results")
    assert failed == ["fails", "hangs", "fails as tests do"]
    took = {m.name.removesuffix(": took"): m.value for m in report.measurements}
    assert 1 <= took["hangs"] < 30
    assert files_of(tmp_path / "results.tar.gz") >= {
        "results/a.json", "results/hangs.log", "results/step.json", "results/fails.log",
    }
    assert (tmp_path / "results" / "hangs.log").read_text() == "begun\n"


def test_the_archive_is_whole_after_each_task(tmp_path):
    seen = "import tarfile, sys; print(tarfile.open(sys.argv[1] + '.tar.gz').getnames())"
    make = "import os, sys; os.mkdir(sys.argv[1] + '/campaign')"
    out = tmp_path / "results"
    assert run_tasks(Report("gpu"), [python(make, "makes"), python(seen, "looks")], out) == []
    assert "results/makes.log" in (out / "looks.log").read_text()
    assert not any("campaign" in name for name in files_of(tmp_path / "results.tar.gz"))


@pytest.mark.parametrize("options", [
    {"device": "cpu", "part": ["training", "everything"]}, {"device": "cuda:99"},
    {"device": "cpu", "step": 4}, {"device": "cpu", "step": 1, "part": ["facts"]},
    {"device": "cpu", "step": 1, "quick": True},
])
def test_an_unknown_part_step_or_device_is_refused(options):
    report = Report("gpu")
    with pytest.raises(UsageError):
        gpu.run(report, **options)
    assert not report.measurements


def test_a_part_that_fails_stops_no_other(tmp_path, monkeypatch):
    def broken(bench: GpuBench) -> None:
        bench.add("before", 1, "share")
        raise RuntimeError("an illegal memory access was encountered")

    def whole(bench: GpuBench) -> None:
        bench.add("after", 2, "share", predicted=3)

    monkeypatch.setattr(gpu, "PARTS", {"broken": broken, "whole": whole})
    out, report = tmp_path / "results", Report("gpu")
    with pytest.raises(UsageError, match="broken"):
        gpu.run(report, device="cpu", out=out)
    body = json.loads((out / "gpu.json").read_text())
    assert [(m["name"], m["predicted"]) for m in body["measurements"]] == [
        ("before", None), ("after", None),  # a model of GPUs predicts nothing of a CPU
    ]
    assert any("illegal" in note for note in body["notes"])
    assert files_of(tmp_path / "results.tar.gz") == {"results/gpu.json"}


def run_alone(*options):
    return subprocess.run(
        [sys.executable, "-c", ONLY_DEPENDENCIES, *options], cwd=ROOT, capture_output=True,
        text=True, check=False,
    )


@pytest.mark.slow
def test_the_file_runs_with_the_dependencies_alone():
    done = run_alone("--help")
    assert done.returncode == 0, done.stderr
    assert "--step" in done.stdout


@pytest.mark.slow
def test_every_part_measures_with_the_dependencies_alone(tmp_path):
    out = tmp_path / "results"
    done = run_alone("--device", "cpu", "--quick", "--out", str(out))
    assert done.returncode == 0, done.stderr
    body = json.loads((out / "gpu.json").read_text())
    figures = {(m["name"], m["unit"]): m["value"] for m in body["measurements"]}
    for figure in (
        ("fire: reference over fused", "times"), ("tiny, T = 2, batch 64", "evaluations/s"),
        ("tiny: training", "samples/s"), ("tiny: training in fp16 over bf16", "times"),
        ("tiny, policy only, 2 groups", "evaluations/s"),
        ("tiny, 4 simulations, groups of 8: host", "µs/evaluation"),
    ):
        assert figures[figure] > 0
    assert files_of(tmp_path / "results.tar.gz") == {"results/gpu.json"}
