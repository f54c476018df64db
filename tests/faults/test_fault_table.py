"""The table in docs/reliability.md is what the tests' runs say, and every fault has its tests."""

import re
from pathlib import Path

import fault_table
import pytest
from fault_rows import ROWS
from fault_table import (
    BEGIN,
    END,
    RunCount,
    add_entries,
    parse_rows,
    read_counts,
    render,
    run_tests,
    what_failed,
)

TESTS = Path(__file__).parents[1]


def test_the_table_of_the_page_is_that_of_the_counts():
    page = fault_table.PAGE.read_text()
    shown = page[page.index(BEGIN) + len(BEGIN) : page.index(END)]
    assert shown.strip() == render(read_counts()).strip(), "make it anew: make faults TIMES=0"


def test_every_fault_has_a_test():
    marked = set()
    for file in TESTS.rglob("test_*.py"):
        for rows in re.findall(r"mark\.fault\(([\d, ]+)\)", file.read_text()):
            marked |= {int(row) for row in rows.split(",")}
    assert marked == {row.number for row in ROWS}


def entry(test, outcome, rows=(1,)):
    return {"test": test, "rows": list(rows), "outcome": outcome}


def test_runs_add_up_until_the_code_changes():
    counts: dict[str, RunCount] = {}
    add_entries(counts, [entry("a", None), entry("b", None), entry("c", None)], "1", "m")
    add_entries(counts, [entry("a", "passed"), entry("b", "skipped")], "1", "m")
    add_entries(counts, [entry("a", "failed")], "1", "m")
    assert counts["a"] == RunCount([1], runs=2, passed=1, code="1", machine="m")
    assert (counts["b"].runs, counts["b"].skipped, counts["c"].runs) == (0, 1, 0)
    add_entries(counts, [entry("a", None)], "2", "m")
    assert counts["a"].runs == 2, "collecting is not running"
    add_entries(counts, [entry("a", "passed", rows=(1, 3))], "2", "m")
    assert counts["a"] == RunCount([1, 3], runs=1, passed=1, code="2", machine="m")


def test_the_table_says_what_was_not_run():
    counts = {
        "a": RunCount([1, 3], runs=10, passed=9, code="abc", machine="m"),
        "b": RunCount([3], runs=2, passed=2, code="abc", machine="m"),
        "c": RunCount([3], skipped=4), "d": RunCount([2]),
    }
    lines = render(counts).splitlines()
    figures = [[cell.strip() for cell in line.split("|")[-4:-1]] for line in lines[2:5]]
    assert figures == [["1", "10", "9"], ["not run", "", ""], ["2 of 3", "12", "11"]]
    assert lines[-1] == (
        "2 tests were run, between 2 and 10 times each: 12 runs, of which 11 passed, at abc, on m. "
        "Not run: 2, of which 1 for want of what they need. "
        "No test of 23 of the 25 faults has been run."
    )
    never = render({name: counts[name] for name in ("a", "d")}).splitlines()[-1]
    assert " on m. Not run: 1. No test of" in never
    everything = render({name: counts[name] for name in ("a", "b")}).splitlines()
    assert everything[4].split("|")[-4].strip() == "2"
    assert "Not run:" not in everything[-1]
    assert render({}).endswith("None of these tests has been run yet.\n")


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
