"""What is read from a profiler's trace, from traces whose answers are known."""

import json
import xml.etree.ElementTree as ET

import pytest
import torch

from chess_snn.bench.trace import (
    busy_share,
    busy_us,
    longest_kernels,
    read_trace,
    shares_by_kind,
    timeline_svg,
)

NEURONS = frozenset({"fire"})


def event(name, start, dur, cat="kernel", tid=7):
    return {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": dur, "tid": tid}


@pytest.fixture
def works(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [
        event("fire", 130, 20, tid=9),
        event("sm90_xmma_conv", 100, 40),
        event("Memcpy HtoD", 160, 10, cat="gpu_memcpy"),
        event("elementwise", 190, 10),
        event("aten::conv2d", 0, 500, cat="cpu_op"),
        {"ph": "M", "name": "process_name"},
    ]}))
    return read_trace(path)


def test_only_work_of_the_device_counts_and_overlap_counts_once(works):
    assert [work.name for work in works] == [
        "sm90_xmma_conv", "fire", "Memcpy HtoD", "elementwise"
    ]
    assert busy_us(works) == 50 + 10 + 10
    assert busy_share(works) == pytest.approx(70 / 100)
    assert busy_share([]) == 0.0


def test_time_is_shared_out_by_kind_and_by_name(works):
    assert shares_by_kind(works, NEURONS) == pytest.approx(
        {"convolutions": 40 / 80, "neurons": 20 / 80, "copies": 10 / 80, "others": 10 / 80}
    )
    name, share, calls = longest_kernels(works, 1)[0]
    assert (name, share, calls) == ("sm90_xmma_conv", 0.5, 1)


def test_the_picture_shows_the_kernels_of_its_stretch(works):
    def bars(first_us, length_us):
        root = ET.fromstring(timeline_svg(works, NEURONS, first_us, length_us))
        heights = [rect.get("height") for rect in root.iter("{http://www.w3.org/2000/svg}rect")]
        return heights.count("22")

    assert bars(0, 100) == 4
    assert bars(0, 25) == 1
    assert bars(45, 30) == 2


def test_a_trace_of_torchs_own_profiler_can_be_read(tmp_path):
    with torch.profiler.profile() as profile:
        torch.ones(8).sum()
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    works = read_trace(tmp_path / "trace.json")
    assert bool(works) == torch.cuda.is_available()
