"""A benchmark's report as a table for people."""

from rich.console import Console
from rich.table import Table

from chess_snn.bench.report import BenchReport, figure_text

_VERDICTS = {None: "", True: " ok", False: " MISSED"}


def print_report(console: Console, report: BenchReport) -> None:
    """Every figure with its bar and whether it holds, and the notes."""
    table = Table(title=f"bench {report.name}", caption=report.machine)
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("unit")
    table.add_column("bar", justify="right")
    for measurement in report.measurements:
        table.add_row(
            measurement.name, figure_text(measurement.value), measurement.unit,
            measurement.bar + _VERDICTS[measurement.passes],
        )
    console.print(table)
    for note in report.notes:
        console.print(note)
