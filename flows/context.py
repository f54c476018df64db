"""A campaign that is running, and what follows each of its stages: MLflow and the object store."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture

from chess_snn.campaign import CampaignConfig, CampaignFolder
from chess_snn.campaign.backup import Backup, Sent, check_store, open_store
from chess_snn.campaign.store.plans import CampaignClock
from chess_snn.campaign.viewing.events import BACKUP
from chess_snn.types import LogFn
from flows.listeners import link_report
from tasks import compute
from tasks.cluster.worker_pool import WorkerPool
from tasks.progress import ProgressBoard
from tasks.record import record
from tasks.report import report

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_NEWS_PERIOD_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class CampaignRun:
    """What the flows of one campaign share and Prefect parameters cannot carry."""

    folder: CampaignFolder
    pool: WorkerPool
    board: ProgressBoard
    clock: CampaignClock
    backup: Backup | None = None
    """In an object store, if it has one."""


def retried(
    stage: Task[_Parameters, _Result], config: CampaignConfig
) -> Task[_Parameters, _Result]:
    """``stage``, tried again as the settings say where that may help."""
    return stage.with_options(
        retries=config.execution.retries, retry_condition_fn=compute.is_worth_retrying
    )


def show_in_mlflow(run: CampaignRun, iteration: int, after: PrefectFuture[Any]) -> None:
    """Record what MLflow lacks once ``after`` is done; say so where it is away."""
    failure = record.submit(run.folder, iteration, wait_for=[after]).result()
    if failure is not None:
        run.board.message(f"not recorded in MLflow yet: {failure}")


def show_report(run: CampaignRun, iteration: int) -> None:
    """Write the campaign's page and link it in Prefect; record it and final matches in MLflow."""
    written = report.submit(run.folder)
    if (failure := written.result()) is not None:
        run.board.message(f"the report is not written: {failure}")
    else:
        link_report(run.folder)
    show_in_mlflow(run, iteration, after=written)


def open_backup(folder: CampaignFolder, say: LogFn) -> Backup | None:
    """The campaign's backup in the object store; None if it has none.

    Raises:
        StorageError: the store refuses, or holds another campaign, or was away for too long.
    """
    settings = folder.config.storage
    if not settings.object_store:
        return None
    check_store(settings)  # without patience
    opened = Backup(folder, open_store(settings, _tell_now_and_then(say)))
    if missing := opened.num_missing():
        say(f"{settings.object_store} lacks {missing} folders, which are sent with what is new")
    return opened


def send_to_store(run: CampaignRun, iteration: int, after: PrefectFuture[Any]) -> None:
    """Send what the store lacks once ``after`` is done; a store that stays away ends the campaign.

    What it lacks then is sent by the run that goes on with the campaign. Damage that is met on the
    way is rebuilt first.
    """
    if run.backup is None:
        return

    def show(done: int, total: int) -> None:
        del total  # a stage has one from its beginning, or none
        run.board.count(iteration, BACKUP, BACKUP, done)

    send = partial(compute.rebuilding, partial(run.backup.send_missing, show))
    with run.board.stage(iteration, BACKUP, "folders", total=0):
        _send.submit(send, iteration, wait_for=[after]).result()


@task(name=BACKUP, task_run_name="backup-{iteration}", cache_policy=NO_CACHE)
def _send(send: Callable[[], Sent], iteration: int) -> Sent:
    """Call ``send``, which waits for a store that is away; Prefect does not try again."""
    del iteration  # names the task's run
    return send()


def _tell_now_and_then(say: LogFn) -> LogFn:
    next_s = 0.0

    def tell(text: str) -> None:
        nonlocal next_s
        compute.give_up_if_stopping()
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + _NEWS_PERIOD_S
            say(text)

    return tell
