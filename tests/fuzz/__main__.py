"""Fuzz every parser of chess-snn: ``python tests/fuzz --inputs 100000 --seed 1``.

Prints for each parser how many inputs were tried, accepted and refused, and how many places they
reached. Ends with code 1 at a crash, a hang, or an input that was accepted by half; the input is
kept in a file, which ``--only PARSER --replay FILE`` tries again.
"""

import argparse
import hashlib
import os
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from fuzzing import Report, keep  # noqa: E402
from lanes import Failure, fuzz_all  # noqa: E402
from targets import TARGETS, shares  # noqa: E402

MOST_KEPT = 40
"""New inputs that ``--keep`` writes for a parser, the shortest ones."""
LONGEST_KEPT = 1500
"""Octets: the corpus stays small."""

_ROW = "{:15} {:>9} {:>9} {:>9} {:>7} {:>9}"


def main() -> int:
    """Fuzz as the command line says; the exit code."""
    options = _parse()
    if options.replay is not None:
        return _replay(options.only[0], options.replay)
    names = options.only or list(TARGETS)
    begun = time.monotonic()
    print(_ROW.format("parser", "inputs", "accepted", "refused", "places", "inputs/s"), flush=True)
    reports: list[Report] = []
    failures: list[Failure] = []
    with tempfile.TemporaryDirectory(prefix="chess-snn-fuzz-") as scratch:
        wanted = shares(options.inputs, names)
        for outcome in fuzz_all(wanted, options.seed, options.processes, Path(scratch)):
            if isinstance(outcome, Failure):
                failures.append(outcome)
                _tell_failure(outcome)
            else:
                reports.append(outcome)
                _tell_report(outcome)
                if options.keep:
                    _keep(outcome)
    total = sum(report.inputs for report in reports)
    print(
        f"{total:,} inputs to {len(reports)} parsers in {time.monotonic() - begun:.0f} s, seed "
        f"{options.seed}, {options.processes} processes: "
        + (f"{len(failures)} FAILED" if failures else "none crashed, hung or was half accepted")
    )
    missing = len(names) - len(reports) - len(failures)
    return 1 if failures or missing else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="of all parsers together")
    parser.add_argument("--seed", type=int, default=0, help="the same one gives the same inputs")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", action="append", choices=list(TARGETS), metavar="PARSER",
                        help=f"one of {', '.join(TARGETS)}; may be repeated")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="try one input, with --only")
    parser.add_argument("--keep", action="store_true",
                        help="put inputs that reached new places into the corpus")
    options = parser.parse_args()
    if options.replay is not None and len(options.only or ()) != 1:
        parser.error("--replay needs one --only PARSER")
    return options


def _replay(name: str, path: Path) -> int:
    target = TARGETS[name]
    verdict = target.attempt(path.read_bytes())
    print(f"{name}: {'accepted' if verdict.is_accepted else 'refused'} {verdict.shape}")
    return 0


def _tell_report(report: Report) -> None:
    pace = report.inputs / max(report.seconds, 1e-9)
    print(_ROW.format(
        report.name, f"{report.inputs:,}", f"{report.accepted:,}", f"{report.refused:,}",
        f"{report.places:,}", f"{pace:,.0f}",
    ), flush=True)


def _tell_failure(failure: Failure) -> None:
    path = Path(f"fuzz-{failure.name}-{hashlib.sha256(failure.data).hexdigest()[:8]}")
    path.write_bytes(failure.data)
    print(
        f"FAILED {failure.name}: {failure.reason[:400]}\n"
        f"  again: python tests/fuzz --only {failure.name} --replay {path}", flush=True,
    )


def _keep(report: Report) -> None:
    short = [data for data in report.new_places if len(data) <= LONGEST_KEPT]
    for data in sorted(short, key=len)[:MOST_KEPT]:
        keep(TARGETS[report.name], data)


if __name__ == "__main__":
    sys.exit(main())
