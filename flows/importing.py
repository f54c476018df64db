"""The import flow: the games of a PGN file become shards."""

from pathlib import Path

from prefect import flow, task
from prefect.artifacts import create_table_artifact

from chess_snn.cores import num_cores
from chess_snn.pgn.importing import import_pgn
from chess_snn.pgn.report import FAULT_KINDS, ImportReport
from chess_snn.types import Json
from flows.listeners import ProgressArtifact
from flows.parameters import CountOrNone, absolute_path
from flows.run_log import log_sentences


@flow(name="import", flow_run_name="import-{file}")
def import_games(file: str, out: str, workers: CountOrNone = 0, strict: bool = False) -> Json:
    """Turn the games of a PGN file into shards that a network can be trained on.

    Args:
        file: PGN on the worker's machine, plain or packed by gzip or zstd; absolute.
        out: a new folder, or that of an import of the same file, which is gone on with; absolute.
        workers: processes; 0 takes every core.
        strict: end at the first bad game, instead of leaving it out.

    Returns:
        What was imported, and what was not and why.
    """
    log_sentences()
    report: ImportReport = read_games(
        absolute_path("file", file), absolute_path("out", out), workers, strict
    )
    if report.games_refused:
        create_table_artifact(_refused_rows(report), key="refused-games")
    return report.to_json()


@task(name="read_games", task_run_name="read-{file}")
def read_games(file: Path, out: Path, workers: int, strict: bool) -> ImportReport:
    """See :func:`chess_snn.pgn.importing.import_pgn`."""
    bar = ProgressArtifact("import-progress")
    imported = import_pgn(
        file, out, workers=workers or num_cores(), strict=strict,
        on_progress=lambda done, total: bar.show(
            done / total if total else 0.0, f"{done:,} of {total:,} bytes read"
        ),
    )
    report = imported.report
    bar.show(
        1.0, f"{report.games:,} of {report.games_read:,} games imported into {out}", is_last=True
    )
    return report


def _refused_rows(report: ImportReport) -> list[Json]:
    return [
        {"kind": kind, "games": report.refused[kind], "first": str(report.examples[kind]),
         "meaning": meaning}
        for kind, meaning in FAULT_KINDS.items() if kind in report.refused
    ]
