"""What more workers bring, and the cost of keeping them busy."""

import importlib
import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.report import Quick, Report, benchmark
from chess_snn.cli.orchestration import load_flows
from chess_snn.errors import UsageError

PARTS: Final = ("campaigns", "scheduling")


def run(
    report: Report, quick: Quick = False,
    part: Annotated[
        str | None, typer.Option(help="campaigns or scheduling; both by default.")
    ] = None,
) -> None:
    """One worker beside two, the cost of orchestration, and thousands of shards.

    Takes about 8 minutes for the first two (campaigns), 5 for the last (scheduling).
    """
    if part is not None and part not in PARTS:
        raise UsageError(f"--part must be one of {', '.join(PARTS)}, got {part!r}")
    load_flows("campaign")  # first: it checks that Prefect is installed, and configures it
    with tempfile.TemporaryDirectory(prefix="chess-snn-bench-") as scratch:
        if part != "scheduling":
            measured = importlib.import_module("benchmarks.orchestration")
            report.progress("self-play with one and two workers")
            games_per_s = measured.measure_workers(report, Path(scratch), quick)
            report.progress(f"a campaign of {measured.ITERATIONS} iterations")
            measured.measure_orchestration(report, Path(scratch), games_per_s, quick)
        if part != "campaigns":
            scheduling = importlib.import_module("benchmarks.scheduling")
            scheduling.measure_scheduling(report, Path(scratch), quick)


command = benchmark("workers", run)
