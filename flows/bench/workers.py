"""``chess-snn bench workers``: what more workers bring, and what it costs to keep them at work."""

import tempfile
from pathlib import Path

from rich.console import Console

from chess_snn.bench.report import BenchReport
from flows.bench.many_workers import measure_many_workers
from flows.bench.orchestration import measure_orchestration
from flows.bench.pace import measure_pace


def run(quick: bool = False) -> BenchReport:
    """Measure all three parts; about 10 minutes on two cores, or a minute with rough figures."""
    report = BenchReport("workers")
    with (
        tempfile.TemporaryDirectory(prefix="chess-snn-bench-") as scratch,
        Console(stderr=True).status("self-play with one and two workers") as status,
    ):
        games_per_s = measure_pace(report, Path(scratch), quick)
        status.update("a campaign, for what is neither playing, training nor evaluating")
        measure_orchestration(report, Path(scratch), games_per_s, quick)
        measure_many_workers(report, Path(scratch), quick, status.update)
    return report
