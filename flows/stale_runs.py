"""Close what a killed process left open in Prefect.

A flow killed with -9 outside a worker stays "Running" for ever: nobody is left to report it. The
campaign's lock says that no other process is writing the campaign, so whatever of it is still open
when a new process takes over has crashed.
"""

from collections.abc import Iterator
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterParentFlowRunId,
    FlowRunFilterTags,
    TaskRunFilter,
    TaskRunFilterFlowRunId,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType, TaskRun
from prefect.client.schemas.sorting import FlowRunSort, TaskRunSort
from prefect.runtime import flow_run as current_flow_run
from prefect.states import Crashed

OPEN_STATES = (StateType.PENDING, StateType.RUNNING, StateType.CANCELLING)
"""States that need a living process. A scheduled or paused run waits for one and is left alone."""

PAGE_SIZE = 200
"""Most objects the API returns at once."""

CRASH_MESSAGE = "The process that ran this was killed; the campaign was resumed by another one."


def campaign_tag(campaign_id: str) -> str:
    """The tag by which a campaign's flow runs are found."""
    return f"campaign:{campaign_id}"


def close_stale_flow_runs(campaign_id: str) -> int:
    """Mark every open run of a campaign, except the current one and its parents, as Crashed.

    Covers the flow runs tagged ``campaign:<id>``, their sub-flow runs and the task runs of all.

    Args:
        campaign_id: as in the tag. The caller must hold the campaign's lock.

    Returns:
        The number of flow runs that were closed.
    """
    with get_client(sync_client=True) as client:
        runs = _campaign_flow_runs(client, campaign_id)
        own = _current_run_and_parents()
        others = {run_id: run for run_id, run in runs.items() if run_id not in own}
        _close_task_runs(client, list(others))
        # Children were found after their parents; closing them first leaves an open parent to find
        # them by, should this be killed as well.
        stale = [run for run in reversed(others.values()) if run.state_type in OPEN_STATES]
        for run in stale:
            client.set_flow_run_state(run.id, Crashed(message=CRASH_MESSAGE), force=True)
        return len(stale)


def _current_run_and_parents() -> set[UUID]:
    """The flow runs that this very code runs in; empty outside a flow."""
    names = (
        current_flow_run.id, current_flow_run.parent_flow_run_id, current_flow_run.root_flow_run_id
    )
    return {UUID(name) for name in names if name is not None}


def _campaign_flow_runs(client: SyncPrefectClient, campaign_id: str) -> dict[UUID, FlowRun]:
    """Every flow run of the campaign by id, parents before their children."""
    tagged = FlowRunFilter(tags=FlowRunFilterTags(all_=[campaign_tag(campaign_id)]))
    found: dict[UUID, FlowRun] = {}
    frontier = _flow_runs(client, tagged)
    while frontier:
        new = {run.id: run for run in frontier if run.id not in found}
        found |= new
        frontier = [run for ids in _pages(list(new)) for run in _flow_runs(client, _children(ids))]
    return found


def _children(parents: list[UUID]) -> FlowRunFilter:
    return FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=parents))


def _flow_runs(client: SyncPrefectClient, wanted: FlowRunFilter) -> list[FlowRun]:
    found: list[FlowRun] = []
    while page := client.read_flow_runs(
        flow_run_filter=wanted, sort=FlowRunSort.START_TIME_ASC, limit=PAGE_SIZE, offset=len(found)
    ):
        found += page
    return found


def _close_task_runs(client: SyncPrefectClient, flow_runs: list[UUID]) -> None:
    is_open = TaskRunFilterState(type=TaskRunFilterStateType(any_=list(OPEN_STATES)))
    for ids in _pages(flow_runs):
        wanted = TaskRunFilter(flow_run_id=TaskRunFilterFlowRunId(any_=ids), state=is_open)
        stale: list[TaskRun] = []
        while page := client.read_task_runs(
            task_run_filter=wanted, sort=TaskRunSort.ID_DESC, limit=PAGE_SIZE, offset=len(stale)
        ):
            stale += page
        for run in stale:
            client.set_task_run_state(run.id, Crashed(message=CRASH_MESSAGE), force=True)


def _pages(ids: list[UUID]) -> Iterator[list[UUID]]:
    for start in range(0, len(ids), PAGE_SIZE):
        yield ids[start : start + PAGE_SIZE]
