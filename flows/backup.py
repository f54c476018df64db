"""The object store of a running campaign: found fit before it begins, and filled as it goes."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.backup import Backup, Sent, check_store, open_store
from chess_snn.campaign.viewing.events import BACKUP
from chess_snn.types import LogFn
from flows.context import CampaignRun
from tasks import compute

_NEWS_PERIOD_S: Final = 30.0


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
    board = run.board

    def show(done: int, total: int) -> None:
        del total  # a stage has one from its beginning, or none
        board.count(iteration, BACKUP, BACKUP, done)

    send = partial(run.rebuilder.run, partial(run.backup.send_missing, show))
    with board.stage(iteration, BACKUP, "folders", total=0):
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
