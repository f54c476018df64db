"""The benchmark of GPUs does all its work on a CPU too, on small sizes."""

import json

import pytest

from benchmarks import gpu
from benchmarks.report import Report
from chess_snn.errors import UsageError


@pytest.mark.slow
def test_every_part_measures():
    report = Report("gpu")
    gpu.run(report, quick=True, device="cpu")
    figures = {(m.name, m.unit): m.value for m in report.measurements}
    for figure in (
        ("fire: reference over fused", "times"), ("tiny, T = 2, batch 64", "evaluations/s"),
        ("tiny: training", "samples/s"), ("tiny: training in fp16 over bf16", "times"),
        ("tiny, policy only", "positions/s"),
    ):
        assert figures[figure] > 0


@pytest.mark.parametrize("options", [
    {"device": "cpu", "part": ["training", "everything"]}, {"device": "cuda:99"},
])
def test_an_unknown_part_or_device_is_refused(options):
    report = Report("gpu")
    with pytest.raises(UsageError):
        gpu.run(report, **options)
    assert not report.measurements


def test_only_work_of_the_device_counts_and_overlap_counts_once(tmp_path):
    def event(name, start, dur, cat="kernel"):
        return {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": dur}

    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [
        event("fire", 130, 20), event("sm90_xmma_conv", 100, 40),
        event("Memcpy HtoD", 160, 10, cat="gpu_memcpy"), event("elementwise", 190, 10),
        event("aten::conv2d", 0, 500, cat="cpu_op"), {"ph": "M", "name": "process_name"},
    ]}))
    works = gpu.read_trace(path)
    assert [work.name for work in works] == [
        "sm90_xmma_conv", "fire", "Memcpy HtoD", "elementwise"
    ]
    assert gpu.busy_share(works) == pytest.approx(70 / 100)
    assert gpu.busy_share([]) == 0.0
    report = Report("gpu")
    gpu.add_kernels(report, "neurons", works)
    assert report.measurements[0].value == pytest.approx(20 / 80)
