"""The experiment flow: a subflow for each variant and seed, and a table of the verdicts.

Prefect runs :func:`experiment` for a deployment. Each subflow starts its campaign as a command,
whose own flow run is on the same server.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path

from prefect import flow, get_run_logger
from prefect.artifacts import create_table_artifact
from prefect.runtime import flow_run

from chess_snn.campaign.store.folder import REPORT
from chess_snn.errors import ConfigError, UsageError
from chess_snn.experiment.file import read_experiment
from chess_snn.experiment.judging import RESULTS, ExperimentRun
from chess_snn.experiment.results import VERDICTS, run_experiment
from chess_snn.experiment.runs import Run, Slot, run_on
from chess_snn.flows.prefect_errors import log_sentences
from chess_snn.tasks.stages import report
from chess_snn.tasks.tracking import tracking_uri
from chess_snn.tasks.tracking.experiment_run import record_experiment
from chess_snn.types import Progress


@flow(name="experiment", flow_run_name=lambda: Path(str(flow_run.parameters.get("file"))).stem)
def experiment(
    file: str = "", directory: str = "", until_decided: bool = False, race: bool = False
) -> str:
    """Run an experiment, or go on with it: every variant with every seed, then the verdicts.

    Args:
        file: the experiment's file, as an absolute path on the machine of the worker.
        directory: its folder, as an absolute path; by default the file's name without its ending.
        until_decided: add seeds one by one, and stop once all verdicts are known.
        race: give no more seeds to variants that are worse.
    """
    log_sentences()
    path = Path(file)
    if not path.is_absolute():
        raise ConfigError(f"file must be an absolute path, got {file!r}")
    logger, context = get_run_logger(), copy_context()

    def in_subflow(run: Run, slot: Slot, should_stop: Callable[[], bool]) -> None:
        @flow(name="variant", flow_run_name=lambda: run.name)
        def variant() -> None:
            """One variant with one seed."""
            run_on(run, slot, should_stop)

        context.copy().run(variant)

    @contextmanager
    def lines(label: str, unit: str) -> Iterator[Progress]:
        logger.info("%s", label)
        yield lambda done, total: logger.debug("%s: %d of %d %s", label, done, total, unit)

    out = Path(directory) if directory else path.with_suffix("")
    work = ExperimentRun(
        read_experiment(path), out, logger.info, lines, until_decided=until_decided, race=race,
        run_one=in_subflow,
    )
    body = run_experiment(work)
    if (failure := report(out)) is not None:
        raise UsageError(failure)
    create_table_artifact(
        table=[{name: cell(row) for name, cell in VERDICTS.items()} for row in body["verdicts"]],
        key="verdicts", description=f"**{body['name']}**. {body['question']}",
    )
    record_experiment(tracking_uri(), body, [out / RESULTS, out / REPORT])
    return str(out)
