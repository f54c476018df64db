"""``python -m benchmarks`` prints what programs can read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import env
from benchmarks.__main__ import app
from chess_snn.cli.main import run_app

REPOSITORY = Path(__file__).parents[2]
NAMES = [entry.name for entry in app.info.cls.table]
QUICK = ["env", "folder", "net", "selfplay", "store", "train", "workers"]


@pytest.fixture
def bench(tmp_path, monkeypatch, capfd):
    """Run ``python -m benchmarks`` in this process, in ``tmp_path``."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
        monkeypatch.chdir(tmp_path)
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            run_app(app, "python -m benchmarks")
        return subprocess.CompletedProcess(
            arguments, ended.value.code or 0, *capfd.readouterr()
        )

    return run


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_writes_a_report(bench, name):
    assert "--json-file" in bench(name, "--help").stdout


@pytest.mark.slow
def test_the_module_runs_the_same_commands():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "env", "--game", "go"], cwd=REPOSITORY,
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 2
    assert "'go'" in done.stderr


@pytest.mark.parametrize("place", [".", "file/report.json"])
def test_a_report_that_cannot_be_written_is_refused_before_the_run_bug(
    bench, tmp_path, monkeypatch, place
):
    (tmp_path / "file").touch()
    monkeypatch.setattr(env, "_measure_chess", lambda *_: pytest.fail("it ran"))
    done = bench("env", "--json-file", place)
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"error: cannot write {place}: ")
    assert "--json-file" in line


def test_a_missed_bar_is_exit_code_1_except_with_quick(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(env, "_measure_chess", lambda report, _: report.add(
        "ratio", 1, "x", at_least=100
    ))
    done = bench("env", "--json", "--json-file", "out/report.json")
    assert done.returncode == 1
    assert "MISSED" in done.stderr
    report = json.loads(done.stdout)
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == report
    assert set(report) == {"name", "measurements", "notes", "started", "machine", "passes"}
    assert set(report["measurements"][0]) == {
        "name", "value", "unit", "at_least", "at_most", "passes"
    }
    done = bench("env", "--quick")
    assert done.returncode == 0
    assert "MISSED" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_quick_benchmark_measures(bench, name):
    done = bench(name, "--quick", "--json")
    assert done.returncode == 0, done.stderr
    measurements = json.loads(done.stdout)["measurements"]
    assert measurements
    assert all(row["value"] > 0 for row in measurements)
