"""The page of an experiment: its question, verdicts, runs and matches in one HTML file."""

from pathlib import Path

from markupsafe import Markup

from chess_snn.campaign.configuration.loading import format_toml
from chess_snn.campaign.store.folder import REPORT
from chess_snn.data import write_text
from chess_snn.experiment.results import TABLES, columns_of, read_results
from chess_snn.report.charts import table_of
from chess_snn.report.experiment_plots import experiment_plots
from chess_snn.report.page import report_style, template
from chess_snn.types import Json


def write_experiment_page(out: Path, target: Path | None = None) -> Path:
    """Write the page, and beside it its plots, of the experiment in ``out``; where the page is.

    Raises:
        UsageError: it has no results yet, or the file cannot be written.
    """
    body, path = read_results(out), target or out / REPORT
    plots = {} if target else {out / name: plot for name, plot in experiment_plots(body).items()}
    for file, text in ({path: experiment_html(body)} | plots).items():
        write_text(file, text)
    return path


def experiment_html(body: Json) -> str:
    """The page of :func:`chess_snn.experiment.results.results_json`; it needs no other file."""
    file = body["file"]
    recipe = {name: file[name] for name in ("start", "budget", "judge", "variants")}
    return template("experiment.html").render(
        body=body,
        style=Markup(report_style()),  # noqa: S704 - files of this package
        plots=[Markup(plot) for plot in experiment_plots(body).values()],  # noqa: S704 - escaped
        recipe=format_toml(recipe),
        tables=[
            table_of(title.format(first=body["first"]), body[key],
                     columns_of(body[key], columns), words=("verdict", "neurons"))
            for key, (title, columns) in TABLES.items()
        ],
    )
