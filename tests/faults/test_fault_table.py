"""Every fault has its row in docs/reliability.md and its tests; every failed run is counted."""

import re
from pathlib import Path

import pytest
from fault_rows import ROWS
from fault_table import ROOT, RunCount, add_entries, parse_rows, render, run_tests, what_failed

TESTS = Path(__file__).parents[1]


def test_the_page_has_the_row_of_every_fault():
    page = (ROOT / "docs" / "reliability.md").read_text()
    shown = [line for line in page.splitlines() if re.match(r"\| \d+ \|", line)]
    assert shown == [str(row) for row in ROWS]


def test_every_fault_has_a_test():
    marked = set()
    for file in TESTS.rglob("test_*.py"):
        for rows in re.findall(r"mark\.fault\(([\d, ]+)\)", file.read_text()):
            marked |= {int(row) for row in rows.split(",")}
    assert marked == {row.number for row in ROWS}


def entry(test, outcome, rows=(1,)):
    return {"test": test, "rows": list(rows), "outcome": outcome}


def test_runs_of_one_test_add_up():
    counts: dict[str, RunCount] = {}
    add_entries(counts, [entry("a", None), entry("b", None), entry("c", None)])
    add_entries(counts, [entry("a", "passed"), entry("b", "skipped")])
    add_entries(counts, [entry("a", "failed")])
    assert counts == {
        "a": RunCount([1], runs=2, passed=1), "b": RunCount([1], skipped=1), "c": RunCount([1]),
    }


def test_the_printed_table_has_the_figures_of_each_fault():
    counts = {
        "a": RunCount([1, 3], runs=10, passed=9), "b": RunCount([3], runs=2, passed=2),
        "c": RunCount([3], skipped=4), "d": RunCount([2]),
    }
    lines = render(counts, [1, 2, 3]).splitlines()
    assert [[int(cell) for cell in line.split()[:4]] for line in lines[1:-1]] == [
        [1, 1, 10, 9], [2, 0, 0, 0], [3, 2, 12, 11]
    ]
    assert [int(cell) for cell in re.findall(r"\b\d+(?= )", lines[-1])[:4]] == [2, 12, 11, 1]


@pytest.mark.parametrize(("code", "entries", "said"), [
    (0, [entry("a", None), entry("a", "passed")], []),
    (0, [entry("a", None), entry("a", "skipped")], []),
    (1, [entry("a", None), entry("a", "failed")], ["a"]),
    (0, [entry("a", None), entry("b", None), entry("b", "passed")], ["a (it never ended)"]),
    (1, [entry("a", None), entry("a", "passed")], ["pytest says that tests failed, and not which"]),
    (2, [entry("a", None)], ["pytest ended with code 2, so nothing of this run is counted"]),
    (5, [], ["pytest ended with code 5, so nothing of this run is counted"]),
])
def test_a_run_that_proves_nothing_does_not_pass(code, entries, said):
    assert what_failed(code, entries) == said


MADE_TESTS = """
import pytest

@pytest.fixture
def leaks():
    yield
    raise AssertionError("a process is left")

@pytest.mark.fault(1)
def test_good(): pass

@pytest.mark.fault(1)
def test_whose_end_fails(leaks): pass

@pytest.mark.fault(1)
def test_elsewhere(): pytest.skip("not here")

@pytest.mark.slow
@pytest.mark.fault(1)
def test_not_asked_for(): raise AssertionError

@pytest.mark.fault(2)
def test_of_another_fault(): raise AssertionError
"""


def test_a_failed_teardown_and_a_file_that_cannot_be_read_are_failures(tmp_path):
    made = tmp_path / "test_made.py"
    made.write_text(MADE_TESTS)
    code, entries = run_tests([1], [str(made), "-m", "not slow"])
    assert not any("test_not_asked_for" in entry["test"] for entry in entries)
    came = {e["test"].partition("::")[2]: e["outcome"] for e in entries if e["outcome"]}
    wanted = {"test_good": "passed", "test_whose_end_fails": "failed", "test_elsewhere": "skipped"}
    assert (code, came) == (1, wanted)
    (failed,) = what_failed(code, entries)
    assert failed.endswith("::test_whose_end_fails")

    (tmp_path / "test_broken.py").write_text("import no_such_module")
    code, entries = run_tests([1], [str(tmp_path)])
    assert what_failed(code, entries) == [
        "pytest ended with code 2, so nothing of this run is counted"
    ]


@pytest.mark.parametrize(("text", "rows"), [("3", [3]), ("1-3,7", [1, 2, 3, 7])])
def test_rows_by_number(text, rows):
    assert parse_rows(text) == rows
    assert len(parse_rows("")) == 25
    with pytest.raises(ValueError, match="there is no fault 26"):
        parse_rows("20-26")
