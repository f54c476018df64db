"""Every fault of docs/reliability.md has tests, and every failed run is counted."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from fault_table import faults, parse_rows

TESTS = Path(__file__).parents[1]


def test_every_fault_has_a_test():
    marked = set()
    for file in TESTS.rglob("test_*.py"):
        for rows in re.findall(r"mark\.fault\(([\d, ]+)\)", file.read_text()):
            marked |= {int(row) for row in rows.split(",")}
    assert marked == faults().keys() == set(range(1, 26))


def test_rows_by_number():
    assert parse_rows("3") == {3}
    assert parse_rows("1-3,7") == {1, 2, 3, 7}
    assert len(parse_rows("")) == 25
    with pytest.raises(pytest.UsageError, match="there is no fault 26"):
        parse_rows("20-26")


MADE_TESTS = """
import pytest

@pytest.fixture
def leaks():
    yield
    raise AssertionError("a process is left")

@pytest.mark.fault(1)
def test_good(): pass

@pytest.mark.fault(1, 3)
def test_whose_end_fails(leaks): pass

@pytest.mark.fault(1)
def test_elsewhere(): pytest.skip("not here")

@pytest.mark.fault(2)
def test_of_another_fault(): raise AssertionError
"""


def test_the_table_counts_runs_and_passes(tmp_path):
    (tmp_path / "test_made.py").write_text(MADE_TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "fault", "-p", "tests.faults.fault_table",
         "--times", "2", "--rows", "1,3", "-c", TESTS.parent / "pyproject.toml", tmp_path],
        cwd=TESTS.parent, capture_output=True, text=True, check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    table = done.stdout.rpartition("passed  fault\n")[2]
    assert re.findall(r"^ +(\d+) +(\d+) +(\d+)  ", table, re.MULTILINE) == [
        ("1", "4", "2"), ("3", "2", "0"),
    ]
