"""``chess-snn bench workers``: what more workers bring, and what it costs to keep them at work."""

import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console

from chess_snn.bench.report import BenchReport, figure_text
from chess_snn.errors import UsageError
from flows.bench.many_workers import measure_many_workers
from flows.bench.orchestration import measure_orchestration
from flows.bench.pace import measure_pace

CAMPAIGNS: Final = "campaigns"
SCHEDULING: Final = "scheduling"
PARTS: Final = (CAMPAIGNS, SCHEDULING)


def run(quick: bool = False, part: str | None = None) -> BenchReport:
    """Measure all parts, about 13 minutes on two cores, or one of :data:`PARTS`.

    Says on standard error what it does, and the figures of each as they come.

    Args:
        quick: a minute or two, with rough figures.
        part: the one to measure; all by default.

    Raises:
        UsageError: there is no such part.
    """
    if part is not None and part not in PARTS:
        raise UsageError(f"--part must be one of {', '.join(PARTS)}, got {part!r}")
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

        if part in {None, CAMPAIGNS}:
            tell("self-play with one and two workers")
            games_per_s = measure_pace(report, scratch, quick)
            say_since(0)
            tell("a campaign, for what is neither playing, training nor evaluating")
            so_far = len(report.measurements)
            measure_orchestration(report, scratch, games_per_s, quick)
            say_since(so_far)
        if part in {None, SCHEDULING}:
            measure_many_workers(report, scratch, quick, tell)
    return report
