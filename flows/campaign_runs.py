"""A campaign's runs in Prefect: found by a tag, one at a time, and closed after a kill.

The folder's lock refuses a second writer; a run that was started on Prefect's page waits instead.
So each campaign has a concurrency limit of one in Prefect, with the name of its tag.

A flow killed with -9 outside a worker stays "Running" for ever, because no process is left to
report it. The campaign's lock says that no other process writes the campaign, so whatever of it is
still open when a new process takes over has crashed.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.sorting import FlowRunSort, TaskRunSort
from prefect.concurrency.sync import concurrency
from prefect.context import TagsContext
from prefect.runtime import deployment, flow_run
from prefect.states import Crashed

OPEN_STATES: Final = [StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]
"""States that need a living process. A scheduled or paused run waits for one and is left alone."""

PAGE_SIZE: Final = 200
"""Most objects the API returns at once."""

CRASH_MESSAGE = "The process that ran this was killed; the campaign was resumed by another one."

LEASE_S: Final = 60.0
"""A run that was killed holds its place for so long, at most."""


def campaign_tag(campaign_id: str) -> str:
    """The tag by which a campaign's flow runs are found."""
    return f"campaign:{campaign_id}"


def close_stale_flow_runs(campaign_id: str) -> int:
    """Mark every open run of a campaign, except the current one and its parents, as Crashed.

    The caller must hold the campaign's lock. Covers the flow runs with the campaign's tag and their
    task runs; returns the number of flow runs.
    """
    own = {flow_run.id, flow_run.parent_flow_run_id, flow_run.root_flow_run_id} - {None}
    of_campaign = {"tags": {"all_": [campaign_tag(campaign_id)]}, "id": {"not_any_": list(own)}}
    is_open = {"state": {"type": {"any_": OPEN_STATES}}}
    with get_client(sync_client=True) as client:
        # Tasks first: should this process be killed as well, their open flow runs are found again.
        for task_run in _read_all(
            client.read_task_runs, flow_run_filter=FlowRunFilter.model_validate(of_campaign),
            task_run_filter=TaskRunFilter.model_validate(is_open), sort=TaskRunSort.ID_DESC,
        ):
            client.set_task_run_state(task_run.id, Crashed(message=CRASH_MESSAGE), force=True)
        stale = _read_all(
            client.read_flow_runs, sort=FlowRunSort.START_TIME_ASC,
            flow_run_filter=FlowRunFilter.model_validate(of_campaign | is_open),
        )
        for run in stale:
            client.set_flow_run_state(run.id, Crashed(message=CRASH_MESSAGE), force=True)
    return len(stale)


def _read_all(read: Callable[..., list[Any]], **filters: Any) -> list[Any]:
    """All objects, of which Prefect's API returns a page at a time."""
    found: list[Any] = []
    while page := read(**filters, limit=PAGE_SIZE, offset=len(found)):
        found += page
    return found


@contextmanager
def one_run_a_folder(
    campaign_id: str, logger: "logging.Logger | logging.LoggerAdapter[logging.Logger]"
) -> Iterator[None]:
    """Enter the block once no other deployed run of the campaign is in it.

    Where the run is of no deployment, nothing is waited for: a terminal wants to be told.
    """
    if deployment.id is None:
        yield
        return
    name = campaign_tag(campaign_id)
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name(name, limit=1)
        if client.read_global_concurrency_limit_by_name(name).active_slots:
            logger.info("another run has this campaign; waiting for it to end")
    with concurrency(
        name, lease_duration=LEASE_S,
        # The server may be away for a while; the folder's lock still keeps others out.
        raise_on_lease_renewal_failure=False,
    ):
        # Let a later run find this one, should it be killed and stay open; not before its turn, for
        # close_stale_flow_runs takes open runs for killed ones.
        with get_client(sync_client=True) as client:
            client.update_flow_run(UUID(flow_run.id), tags=sorted({*flow_run.tags, name}))
        yield


def untagged_tasks() -> TagsContext:
    """Leave tags out of the runs that are submitted in the block.

    For each task run that has one, Prefect asks its server for a place among those of that tag
    before it begins. A task is found by its flow run as well, and on a machine that computes the
    answer took about two seconds, in which a worker waited for its next shard.
    """
    return TagsContext(current_tags=set())
