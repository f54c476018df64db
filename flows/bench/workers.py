"""``chess-snn bench workers``: what more workers bring, and what it costs to keep them at work."""

import tempfile
from pathlib import Path

from rich.console import Console

from chess_snn.bench.report import BenchReport, figure_text
from flows.bench.many_workers import measure_many_workers
from flows.bench.orchestration import measure_orchestration
from flows.bench.pace import measure_pace


def run(quick: bool = False) -> BenchReport:
    """Measure all three parts; about 10 minutes on two cores, or a minute with rough figures.

    Says on standard error what it does, and the figures of each part as they come.
    """
    report = BenchReport("workers")
    console = Console(stderr=True)
    with (
        tempfile.TemporaryDirectory(prefix="chess-snn-bench-") as folder,
        console.status("") as status,
    ):
        scratch = Path(folder)

        def tell(doing: str) -> None:
            status.update(doing)
            if not console.is_terminal:
                console.print(doing, highlight=False)

        def say_since(first: int) -> None:
            for row in report.measurements[first:]:
                console.print(f"  {row.name}: {figure_text(row.value)} {row.unit}", highlight=False)

        tell("self-play with one and two workers")
        games_per_s = measure_pace(report, scratch, quick)
        say_since(0)
        tell("a campaign, for what is neither playing, training nor evaluating")
        so_far = len(report.measurements)
        measure_orchestration(report, scratch, games_per_s, quick)
        say_since(so_far)
        measure_many_workers(report, scratch, quick, tell)
    return report
