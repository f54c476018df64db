"""The GPU benchmark keeps what each part measured, and needs the dependencies alone."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gpu
from benchmarks.gpu_bench import NEURON_KERNELS, GpuBench, add_kernels, busy_share, read_trace
from benchmarks.harness import Report
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
sys.argv = ["benchmarks", "gpu", *sys.argv[1:]]
runpy.run_module("benchmarks", run_name="__main__")
"""
"""Runs it with no package but chess-snn's dependencies, and peers, that can be imported."""


@pytest.mark.parametrize("options", [
    {"device": "cpu", "part": ["training", "everything"]}, {"device": "cuda:99"},
])
def test_an_unknown_part_or_device_is_refused(options):
    report = Report("gpu")
    with pytest.raises(UsageError):
        gpu.run(report, **options)
    assert not report.measurements


def test_a_part_that_fails_stops_no_other(tmp_path, monkeypatch):
    def broken(bench: GpuBench) -> None:
        bench.report.add("before", 1, "share")
        raise RuntimeError("an illegal memory access was encountered")

    def whole(bench: GpuBench) -> None:
        bench.report.add("after", 2, "share")

    monkeypatch.setattr(gpu, "PARTS", {"broken": broken, "whole": whole})
    report = Report("gpu", json_file=tmp_path / "gpu.json")
    with pytest.raises(UsageError, match="broken"):
        gpu.run(report, device="cpu")
    body = json.loads((tmp_path / "gpu.json").read_text())
    assert [m["name"] for m in body["measurements"]] == ["before", "after"]
    assert any("illegal" in note for note in body["notes"])


def run_alone(*options):
    return subprocess.run(
        [sys.executable, "-c", ONLY_DEPENDENCIES, *options], cwd=ROOT, capture_output=True,
        text=True, check=False,
    )


@pytest.mark.slow
def test_every_part_measures_with_the_dependencies_alone(tmp_path):
    told = tmp_path / "gpu.json"
    done = run_alone("--device", "cpu", "--quick", "--json-file", str(told))
    assert done.returncode == 0, done.stderr
    body = json.loads(told.read_text())
    figures = {(m["name"], m["unit"]): m["value"] for m in body["measurements"]}
    for figure in (
        ("fire: reference over fused", "times"), ("tiny, T = 2, batch 64", "evaluations/s"),
        ("tiny: training", "samples/s"), ("tiny: training in fp32 over bf16", "times"),
        ("tiny, policy only, 2 groups", "evaluations/s"),
        ("tiny, 4 simulations, groups of 8: host", "µs/evaluation"),
    ):
        assert figures[figure] > 0


def test_only_work_of_the_device_counts_and_overlap_counts_once(tmp_path):
    def event(name, start, dur, cat="kernel"):
        return {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": dur}

    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [
        event("fire", 130, 20), event("sm90_xmma_conv", 100, 40),
        event("Memcpy HtoD", 160, 10, cat="gpu_memcpy"), event("elementwise", 190, 10),
        event("aten::conv2d", 0, 500, cat="cpu_op"), {"ph": "M", "name": "process_name"},
    ]}))
    works = read_trace(path)
    assert [work.name for work in works] == [
        "sm90_xmma_conv", "fire", "Memcpy HtoD", "elementwise"
    ]
    assert busy_share(works) == pytest.approx(70 / 100)
    assert busy_share([]) == 0.0
    report = Report("gpu")
    add_kernels(report, "neurons", works)
    assert report.measurements[0].value == pytest.approx(20 / 80)


@pytest.mark.parametrize("name", ["neuron_triton_kernels", "norm_neuron_triton_kernels"])
def test_all_kernels_that_fire_count_as_neurons(name):
    pytest.importorskip("triton", reason="triton is not installed: its kernels are not looked up")
    module = importlib.import_module(f"chess_snn.nets.gpu.{name}")
    launched = {
        kernel for kernel, function in vars(module).items()
        if not kernel.startswith("_")
        and getattr(getattr(function, "fn", None), "__module__", None) == module.__name__
    }
    assert launched
    assert launched <= NEURON_KERNELS
