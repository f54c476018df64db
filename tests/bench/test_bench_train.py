"""Other libraries in the benchmark of training; a test does not hold its bars."""

import pytest

from benchmarks import train
from benchmarks.harness import QUICK
from benchmarks.random_data import random_window
from benchmarks.report import Report
from benchmarks.spiking_peers import installed_peers


@pytest.fixture(scope="module")
def report():
    report = Report("train")
    train.add_peers(report, random_window(4, 40), batch_size=4, pace=QUICK)
    return report


def test_ours_and_what_is_installed_train_on_one_core(report):
    figures = {m.name: m for m in report.measurements}
    assert len(figures) == len(report.measurements)
    assert all(m.value > 0 for m in report.measurements)
    for precision in ("bf16", "fp32"):
        assert f"small: ours, {precision}, one core" in figures
    for peer in installed_peers():
        theirs = max(
            m.value for name, m in figures.items() if name.startswith(f"small: {peer}, bf16")
        )
        ratio = figures[f"small: ours in bf16 over {peer} in bf16"]
        assert ratio.value == pytest.approx(figures["small: ours, bf16, one core"].value / theirs)


def test_spikingjelly_is_a_bar_or_a_note(report):
    bars = {m.name: m.at_least for m in report.measurements if m.passes is not None}
    if "SpikingJelly" in installed_peers():
        assert bars == {"small: ours in bf16 over SpikingJelly in fp32": 1.5}
    else:
        assert any(note.startswith("SpikingJelly is NOT installed") for note in report.notes)
