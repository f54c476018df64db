"""Run the tests of docs/reliability.md so many times, and make its table of what came of them.

``python tests/faults/fault_table.py --times 10 --rows 1-5,12`` (``make faults TIMES=10 ROWS=...``)
runs them and writes docs/reliability.json after each time, so that an interruption loses one.
Figures of one test are of one state of the code: where that has changed, it begins to count anew.
``--times 0`` makes the table from the file alone.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import fault_recorder
from fault_rows import ROWS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "reliability.json"
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- made by `make faults`: begin -->", "<!-- made by `make faults`: end -->"
CODE = ("chess_snn", "flows", "tasks", "tests")
RAN_AND_FAILED = 1
RAN = (0, RAN_AND_FAILED)
"""Exit codes of pytest with which it collected every test and ran some; all others are its own."""


@dataclass
class RunCount:
    """How often one test was run, and what came of it, at one state of the code."""

    rows: list[int]
    runs: int = 0
    passed: int = 0
    skipped: int = 0
    """Not counted as runs: the machine could not do it."""
    code: str = ""
    machine: str = ""

    def count(self, outcome: str) -> None:
        self.skipped += outcome == "skipped"
        self.runs += outcome != "skipped"
        self.passed += outcome == "passed"


def read_counts(file: Path = RESULTS) -> dict[str, RunCount]:
    """By the test's name."""
    if not file.exists():
        return {}
    return {name: RunCount(**values) for name, values in json.loads(file.read_text()).items()}


def write_counts(counts: dict[str, RunCount], file: Path = RESULTS) -> None:
    body = {name: asdict(counts[name]) for name in sorted(counts)}
    file.write_text(json.dumps(body, indent=1) + "\n")


def add_entries(
    counts: dict[str, RunCount], entries: list[dict], code: str, machine: str
) -> None:
    """Add what one run of the tests said to ``counts``."""
    for entry in entries:
        known = counts.get(entry["test"])
        if known is None or (entry["outcome"] is not None and known.code != code):
            known = counts[entry["test"]] = RunCount(entry["rows"], code=code, machine=machine)
        known.rows = entry["rows"]
        if entry["outcome"] is not None:
            known.count(entry["outcome"])


def render(counts: dict[str, RunCount]) -> str:
    """The table, and below it which states of the code the figures are of."""
    lines = [
        "| | fault | promise | how it is injected | tests run | runs | passed |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    not_run = 0
    for row in ROWS:
        collected = [count for count in counts.values() if row.number in count.rows]
        found = [count for count in collected if count.runs]
        not_run += not found
        figures = f"{sum(c.runs for c in found):,}", f"{sum(c.passed for c in found):,}"
        cells = [_run_of(found, collected), *figures] if found else ["not run", "", ""]
        lines.append(
            f"| {row.number} | {row.fault} | {row.promise} | {row.injection} | "
            + " | ".join(cells) + " |"
        )
    lines += ["", _summary(counts, not_run)]
    return "\n".join(lines) + "\n"


def _run_of(run: list[RunCount], collected: list[RunCount]) -> str:
    """How many tests were run, and of how many where that is not all."""
    if len(run) == len(collected):
        return f"{len(run):,}"
    return f"{len(run):,} of {len(collected):,}"


def _summary(counts: dict[str, RunCount], not_run: int) -> str:
    run = [count for count in counts.values() if count.runs]
    not_run_tests = [count for count in counts.values() if not count.runs]
    skipped = [count for count in not_run_tests if count.skipped]
    if not run:
        return "None of these tests has been run yet."
    total, passed = sum(c.runs for c in run), sum(c.passed for c in run)
    fewest, most = min(c.runs for c in run), max(c.runs for c in run)
    times = f"{fewest} times each" if fewest == most else f"between {fewest} and {most} times each"
    text = (
        f"{len(run)} tests were run, {times}: {total:,} runs, of which {passed:,} passed, at "
        f"{', '.join(sorted({c.code for c in run}))}, on "
        f"{'; '.join(sorted({c.machine for c in run}))}."
    )
    if not_run_tests:
        text += f" Not run: {len(not_run_tests):,}"
        text += f", of which {len(skipped):,} for want of what they need." if skipped else "."
    if not_run:
        text += f" No test of {not_run} of the {len(ROWS)} faults has been run."
    return text


def write_page(counts: dict[str, RunCount], page: Path = PAGE) -> None:
    """Put the table between its marks."""
    text = page.read_text()
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    page.write_text(f"{head}{BEGIN}\n\n{render(counts)}\n{END}{tail}")


def run_tests(rows: list[int], pytest_arguments: list[str]) -> tuple[int, list[dict]]:
    """One run of the tests of ``rows``: pytest's exit code, and what the recorder wrote."""
    with tempfile.TemporaryDirectory() as scratch:
        record = Path(scratch, "record")
        record.touch()
        here = str(Path(__file__).parent)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", fault_recorder.__name__, "-m", "fault",
             "-p", "no:cacheprovider", *pytest_arguments],
            cwd=ROOT, check=False, env=_not_distributed() | {
                fault_recorder.FILE: str(record),
                fault_recorder.WANTED_ROWS: json.dumps(rows),
                "PYTHONPATH": os.pathsep.join([here, str(ROOT), os.environ.get("PYTHONPATH", "")]),
            },
        )
        return done.returncode, [json.loads(line) for line in record.read_text().splitlines()]


def _not_distributed() -> dict[str, str]:
    """The environment of a run of its own, though this one may be a part of another."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST")}


def what_failed(code: int, entries: list[dict]) -> list[str]:
    """Why one run of the tests proves nothing, or not all: a line each; none where all passed.

    Args:
        code: pytest's exit code.
        entries: what the recorder wrote.
    """
    if code not in RAN:
        return [f"pytest ended with code {code}, so nothing of this run is counted"]
    came = {entry["test"] for entry in entries if entry["outcome"] is not None}
    failed = [entry["test"] for entry in entries if entry["outcome"] == "failed"]
    missing = [entry["test"] for entry in entries if entry["test"] not in came]
    said = failed + [f"{test} (it never ended)" for test in missing]
    if code == RAN_AND_FAILED and not said:
        return ["pytest says that tests failed, and not which"]
    return said


def code_state() -> str:
    """The last commit that touched the code, with a plus where it was edited since."""
    last = _git("log", "-1", "--format=%h", "--", *CODE)
    return last + ("+" if _git("status", "--porcelain", "--", *CODE) else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def machine_name() -> str:
    return f"{platform.system()} {platform.machine()} with {os.cpu_count()} cores"


def parse_rows(text: str) -> list[int]:
    """``"1-3,7"`` → [1, 2, 3, 7]; nothing means all."""
    if not text:
        return [row.number for row in ROWS]
    wanted: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        wanted |= set(range(int(first), int(last or first) + 1))
    if unknown := wanted - {row.number for row in ROWS}:
        raise ValueError(f"there is no fault {min(unknown)}; they are numbered 1 to {len(ROWS)}")
    return sorted(wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=1, help="how often (default %(default)s)")
    parser.add_argument("--rows", default="", help="which faults, such as 1-5,12; by default all")
    parser.add_argument("pytest", nargs="*", help="for pytest, after --; such as -- -k failpoint")
    options = parser.parse_args()
    try:
        rows = parse_rows(options.rows)
    except ValueError as error:
        parser.error(str(error))
    code, machine, failed = code_state(), machine_name(), 0
    for number in range(options.times):
        began = time.monotonic()
        exit_code, entries = run_tests(rows, options.pytest)
        bad = what_failed(exit_code, entries)
        if exit_code in RAN:
            counts = read_counts()
            if rows == parse_rows("") and not options.pytest:  # all there are were collected
                collected = {entry["test"] for entry in entries}
                counts = {name: counts[name] for name in counts if name in collected}
            add_entries(counts, entries, code, machine)
            write_counts(counts)
            write_page(counts)
        failed += len(bad)
        print(
            f"{number + 1} of {options.times} times, {time.monotonic() - began:.0f} s: "
            + (f"failed: {', '.join(bad)}" if bad else "all passed"),
            flush=True,
        )
    write_page(read_counts())
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
