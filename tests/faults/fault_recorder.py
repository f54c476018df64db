"""A pytest plugin: run the tests of some faults, and write what came of each to a file.

Used by :mod:`fault_table` as ``-p fault_recorder``, with FAULT_RECORD naming the file and
FAULT_ROWS the faults; a line of JSON a test. Tests may run side by side (``-n``).
"""

import json
import os
from pathlib import Path

import pytest

FILE, WANTED_ROWS = "FAULT_RECORD", "FAULT_ROWS"
_PROPERTY = "fault rows"
_phases: dict[str, list[str]] = {}
"""What came of setting up, calling and tearing down, by test."""


def rows_of(item: pytest.Item) -> list[int]:
    return sorted({row for mark in item.iter_markers("fault") for row in mark.args})


@pytest.hookimpl(trylast=True)  # so that those are gone which `-m` leaves out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = set(json.loads(os.environ[WANTED_ROWS]))
    chosen = [item for item in items if wanted & set(rows_of(item))]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen
    for item in items:
        item.user_properties.append((_PROPERTY, rows_of(item)))
        _write({"test": item.nodeid, "rows": rows_of(item), "outcome": None})


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    phases = _phases.setdefault(report.nodeid, [])
    phases.append(report.outcome)
    if report.when != "teardown":  # which comes last, also where setting up failed or skips
        return
    if "PYTEST_XDIST_WORKER" in os.environ:  # who distributes tests is told too, and writes
        return
    _write({
        "test": report.nodeid, "rows": dict(report.user_properties)[_PROPERTY],
        "outcome": next((bad for bad in ("failed", "skipped") if bad in phases), "passed"),
    })


def _write(entry: dict[str, object]) -> None:
    with Path(os.environ[FILE]).open("a") as file:
        file.write(json.dumps(entry) + "\n")
