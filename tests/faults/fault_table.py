"""Run the tests of the faults in docs/reliability.md, and print how often each fault was survived.

``python tests/faults/fault_table.py --times 10 --rows 1-5,12`` (``make faults TIMES=10 ROWS=...``).
Ctrl-C ends the runs early and prints the table of those that ended. The result of a release is
stated in docs/reliability.md.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import fault_recorder
from fault_rows import ROWS

ROOT = Path(__file__).parents[2]
CODE = ("chess_snn", "flows", "tasks", "tests")
RAN_AND_FAILED = 1
RAN = (0, RAN_AND_FAILED)
"""Exit codes of pytest with which it collected every test and ran some; all others are its own."""


@dataclass
class RunCount:
    """How often one test was run, and how it ended."""

    rows: list[int]
    runs: int = 0
    passed: int = 0
    skipped: int = 0
    """Not counted as runs: the machine lacked what the test needs."""

    def count(self, outcome: str) -> None:
        self.skipped += outcome == "skipped"
        self.runs += outcome != "skipped"
        self.passed += outcome == "passed"


def add_entries(counts: dict[str, RunCount], entries: list[dict]) -> None:
    """Add one run of the tests to ``counts``, which are by the test's name."""
    for entry in entries:
        count = counts.setdefault(entry["test"], RunCount(entry["rows"]))
        if entry["outcome"] is not None:
            count.count(entry["outcome"])


def render(counts: dict[str, RunCount], rows: list[int]) -> str:
    """A line for each fault of ``rows`` and a summary."""
    lines = ["  #  tests   runs  passed  fault"]
    for row in ROWS:
        if row.number in rows:
            run = [count for count in counts.values() if row.number in count.rows and count.runs]
            runs, passed = sum(c.runs for c in run), sum(c.passed for c in run)
            lines.append(f"{row.number:3}{len(run):7,}{runs:7,}{passed:8,}  {row.fault}")
    run = [count for count in counts.values() if count.runs]
    total, passed = sum(c.runs for c in run), sum(c.passed for c in run)
    skipped = sum(not c.runs and c.skipped > 0 for c in counts.values())
    lines.append(
        f"{len(run):,} tests, {total:,} runs, {passed:,} passed; {skipped:,} tests skipped"
    )
    return "\n".join(lines)


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
    counts: dict[str, RunCount] = {}
    failed = 0
    try:
        for number in range(options.times):
            began = time.monotonic()
            exit_code, entries = run_tests(rows, options.pytest)
            bad = what_failed(exit_code, entries)
            if exit_code in RAN:
                add_entries(counts, entries)
            failed += len(bad)
            print(
                f"{number + 1} of {options.times} times, {time.monotonic() - began:.0f} s: "
                + (f"failed: {', '.join(bad)}" if bad else "all passed"),
                flush=True,
            )
    finally:
        print(f"{code_state()} on {machine_name()}", render(counts, rows), sep="\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
