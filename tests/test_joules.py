"""Joules by counters: none here, so RAPL's files are made, and read by zeus."""

import os
import tempfile
from pathlib import Path

import pytest

from chess_snn.joules import EnergyCounters, Joules, counters_if_installed

pytest.importorskip("zeus")
rapl = pytest.importorskip("zeus.device.cpu.rapl")
cpus = pytest.importorskip("zeus.device.cpu")

MOST_UJ = 262_143_328_850


@pytest.fixture
def counter(tmp_path, monkeypatch):
    """A processor whose counter a test writes."""
    return made_counter(tmp_path / "intel-rapl", monkeypatch)


def made_counter(folder, monkeypatch):
    package = folder / "intel-rapl:0"
    package.mkdir(parents=True)
    (package / "name").write_text("package-0\n")
    (package / "energy_uj").write_text("5000000\n")
    (package / "max_energy_range_uj").write_text(f"{MOST_UJ}\n")
    monkeypatch.setattr(rapl, "RAPL_DIR", str(package.parent))
    forget(monkeypatch)
    return package / "energy_uj"


def forget(monkeypatch):
    """Let zeus look at the machine again: it keeps what it has found."""
    monkeypatch.setattr(cpus, "_cpus", None)
    rapl.rapl_is_available.cache_clear()


def test_a_lap_is_the_difference_of_the_counter(counter):
    counters = EnergyCounters()
    counter.write_text("7500000\n")
    first = counters.lap()
    counter.write_text("7600000\n")
    second = counters.lap()
    assert (first.processors, first.gpus, first.note) == (pytest.approx(2.5), None, "")
    assert (second.total, second.counters) == (pytest.approx(0.1), "processors")


def test_a_counter_that_stands_still_is_not_believed(counter, monkeypatch):
    counters = EnergyCounters()
    monkeypatch.setattr("chess_snn.joules._LEAST_S", 0.0)
    found = counters.lap()
    assert found.total is None
    assert "still" in found.note


def test_without_a_counter_nothing_is_measured_and_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(rapl, "RAPL_DIR", str(tmp_path / "none"))
    forget(monkeypatch)
    found = EnergyCounters().lap()
    assert (found.total, found.counters) == (None, "")
    assert found.note
    assert found.seconds >= 0


@pytest.mark.skipif(os.geteuid() != 0, reason="changes its user")
def test_a_counter_that_may_not_be_read_is_named(monkeypatch):
    with tempfile.TemporaryDirectory() as folder:  # others may not enter pytest's
        Path(folder).chmod(0o755)
        made_counter(Path(folder) / "intel-rapl", monkeypatch).chmod(0)
        os.seteuid(65534)
        try:
            found = EnergyCounters().lap()
        finally:
            os.seteuid(0)
    assert found.total is None
    assert "privileges" in found.note


def test_both_kinds_are_added_up():
    assert Joules(1.5, 2.0, 1.0).total == 3.5
    assert Joules(1.5, 2.0, 1.0).counters == "GPUs and processors"
    assert counters_if_installed() is not None
