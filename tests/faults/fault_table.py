"""A pytest plugin: run the tests of some faults several times, and print how often each passed.

``make faults TIMES=10 ROWS=1-5,12`` loads it. The faults are the rows of the table in
docs/reliability.md; a test of one is marked ``@pytest.mark.fault(row)``. The result of a release is
stated there too.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
_ROWS = "fault rows"


def faults() -> dict[int, str]:
    """The rows of the page, by number."""
    found = re.findall(r"^\| (\d+) \| ([^|]+) \|", PAGE.read_text(), flags=re.MULTILINE)
    return {int(number): fault for number, fault in found}


def parse_rows(text: str) -> set[int]:
    """``"1-3,7"`` → {1, 2, 3, 7}; nothing means all."""
    if not text:
        return set(faults())
    wanted: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        wanted |= set(range(int(first), int(last or first) + 1))
    if unknown := wanted - faults().keys():
        raise pytest.UsageError(f"there is no fault {min(unknown)}; they are 1 to {len(faults())}")
    return wanted


def rows_of(item: pytest.Item) -> set[int]:
    return {row for mark in item.iter_markers("fault") for row in mark.args}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", type=int, default=1, help="how often each test is run")
    parser.addoption("--rows", default="", help="which faults, such as 1-5,12; by default all")


@pytest.fixture
def fault_run(request: pytest.FixtureRequest) -> int:
    """The number of this run of a test."""
    return int(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    times = metafunc.config.getoption("--times")
    if times > 1 and metafunc.definition.get_closest_marker("fault"):
        metafunc.fixturenames.append("fault_run")
        metafunc.parametrize("fault_run", range(times), indirect=True)


@pytest.hookimpl(trylast=True)  # so that those are gone which `-m` leaves out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = parse_rows(config.getoption("--rows"))
    config.hook.pytest_deselected(items=[item for item in items if not wanted & rows_of(item)])
    items[:] = [item for item in items if wanted & rows_of(item)]
    for item in items:
        item.user_properties.append((_ROWS, sorted(rows_of(item))))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """A line for each fault: its runs, and how many of them passed."""
    stats = terminalreporter.stats
    failed = {r.nodeid: r for kind in ("failed", "error") for r in stats.get(kind, ())}
    called = {r.nodeid: r for r in stats.get("passed", ()) if r.when == "call"}
    runs, passed = Counter[int](), Counter[int]()
    for test, report in (called | failed).items():
        rows = dict(getattr(report, "user_properties", ())).get(_ROWS, ())
        runs.update(rows)
        passed.update(rows if test not in failed else ())
    terminalreporter.section("faults")
    terminalreporter.line("  #   runs  passed  fault")
    for row in sorted(parse_rows(config.getoption("--rows"))):
        terminalreporter.line(f"{row:3}{runs[row]:7,}{passed[row]:8,}  {faults()[row]}")
