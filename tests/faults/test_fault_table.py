"""The table in docs/reliability.md is what the tests' runs say, and every fault has its tests."""

import re
from pathlib import Path

import fault_table
import pytest
from fault_rows import ROWS
from fault_table import BEGIN, END, RunCount, add_entries, parse_rows, read_counts, render

TESTS = Path(__file__).parents[1]
STORED_DATA = {10, 11, 24, 25}
"""Faults of data that was stored: damaged, disguised or old."""


def test_the_table_of_the_page_is_that_of_the_counts():
    page = fault_table.PAGE.read_text()
    shown = page[page.index(BEGIN) + len(BEGIN) : page.index(END)]
    assert shown.strip() == render(read_counts()).strip(), "make it anew: make faults TIMES=0"


def test_every_fault_has_a_test():
    marked = set()
    for file in TESTS.rglob("test_*.py"):
        for rows in re.findall(r"mark\.fault\(([\d, ]+)\)", file.read_text()):
            marked |= {int(row) for row in rows.split(",")}
    wanted = {row.number for row in ROWS} - STORED_DATA
    assert marked >= wanted, f"no test of {sorted(wanted - marked)}"
    assert marked <= {row.number for row in ROWS}


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
    assert figures == [["1", "10", "9"], ["1", "0", "0"], ["3", "12", "11"]]
    assert lines[-1] == (
        "2 tests were run, between 2 and 10 times each: 12 runs, of which 11 passed, at abc, on m. "
        "1 tests cannot be run there. 1 tests have not been run."
    )
    assert render({}).endswith("None of these tests has been run yet.\n")


@pytest.mark.parametrize(("text", "rows"), [("3", [3]), ("1-3,7", [1, 2, 3, 7])])
def test_rows_by_number(text, rows):
    assert parse_rows(text) == rows
    assert len(parse_rows("")) == 25
    with pytest.raises(ValueError, match="there is no fault 26"):
        parse_rows("20-26")
