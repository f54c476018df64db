"""A campaign that runs: its flow runs in Prefect, and what follows each of its stages.

Runs are found by a tag, one at a time, and closed after a kill. The folder's lock refuses a second
writer; a run that was started on Prefect's page waits instead. So each campaign has a concurrency
limit of one in Prefect, with the name of its tag.

A flow killed with -9 outside a worker stays "Running" for ever, because no process is left to
report it. The campaign's lock says that no other process writes the campaign, so whatever of it is
still open when a new process takes over has crashed. Runs that wait for their turn are left alone:
they have the tag too if they are retried.

MLflow gets what a stage has committed.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Final, ParamSpec, TypeVar
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.client.schemas.objects import StateDetails, StateType
from prefect.client.schemas.sorting import FlowRunSort, TaskRunSort
from prefect.concurrency.sync import concurrency
from prefect.context import TagsContext
from prefect.futures import PrefectFuture
from prefect.runtime import deployment, flow_run
from prefect.states import Crashed, Running
from prefect.utilities.engine import link_state_to_task_run_result

from chess_snn.campaign import CampaignFolder, Receipt
from chess_snn.campaign.store.plans import CampaignClock, ProgressPlan
from chess_snn.flows.links import link_report
from chess_snn.joules import EnergyCounters
from chess_snn.tasks import compute
from chess_snn.tasks.cluster.worker_pool import WorkerPool
from chess_snn.tasks.progress import ProgressBoard, Stage
from chess_snn.tasks.record import record
from chess_snn.tasks.stages import report

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

OPEN_STATES: Final = [StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]
"""States that need a living process. A scheduled or paused run waits for one and is left alone."""

PAGE_SIZE: Final = 200
"""Most objects the API returns at once."""

CRASH_MESSAGE = "The process that ran this was killed; the campaign was resumed by another one."

LEASE_S: Final = 60.0
"""A run that was killed holds its place for so long, at most."""

_TAG: Final = "campaign:"
_WAITING: Final = "Waiting"
"""Name of the state of a flow run that waits until another one has left the campaign."""


def campaign_tag(campaign_id: str) -> str:
    """The tag by which a campaign's flow runs are found."""
    return f"{_TAG}{campaign_id}"


def own_campaign_id() -> str | None:
    """Id of the campaign that the current flow run worked on before it was retried, if it was."""
    ids = [tag.removeprefix(_TAG) for tag in flow_run.tags if tag.startswith(_TAG)]
    return ids[0] if ids else None


def tag_flow_run(campaign_id: str, name: str | None = None) -> None:
    """Give the current flow run the tag of its campaign, and ``name`` if that is given.

    Call it in the run's turn alone: :func:`close_stale_flow_runs` takes open runs that have the tag
    for killed ones.
    """
    with get_client(sync_client=True) as client:
        client.update_flow_run(
            UUID(flow_run.id), name=name, tags=sorted({*flow_run.tags, campaign_tag(campaign_id)})
        )


def close_stale_flow_runs(campaign_id: str) -> int:
    """Mark every open run of a campaign, except the current one and its parents, as Crashed.

    The caller must hold the campaign's lock. Covers the flow runs with the campaign's tag and the
    task runs of these and of the current one, which has some open if it was killed and is retried;
    returns the number of flow runs. Those that wait for a process or for their turn are left alone.
    """
    own = {flow_run.id, flow_run.parent_flow_run_id, flow_run.root_flow_run_id} - {None}
    of_campaign = {"tags": {"all_": [campaign_tag(campaign_id)]}}
    has_begun = of_campaign | {"id": {"not_any_": list(own - {flow_run.id})}}
    is_other = of_campaign | {"id": {"not_any_": list(own)}}
    is_open = {"state": {"type": {"any_": OPEN_STATES}, "name": {"not_any_": [_WAITING]}}}
    with get_client(sync_client=True) as client:
        # Tasks first: should this process be killed as well, their open flow runs are found again.
        for task_run in _read_all(
            client.read_task_runs, flow_run_filter=FlowRunFilter.model_validate(has_begun),
            task_run_filter=TaskRunFilter.model_validate(is_open), sort=TaskRunSort.ID_DESC,
        ):
            client.set_task_run_state(task_run.id, Crashed(message=CRASH_MESSAGE), force=True)
        stale = [
            run for run in _read_all(
                client.read_flow_runs, sort=FlowRunSort.START_TIME_ASC,
                flow_run_filter=FlowRunFilter.model_validate(is_other | is_open),
            )
            if run.deployment_id is None or not run.state.is_pending()
        ]
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
    name, run_id = campaign_tag(campaign_id), UUID(flow_run.id)
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name(name, limit=1)
        waits = bool(client.read_global_concurrency_limit_by_name(name).active_slots)
        if waits:
            logger.info("another run has this campaign; waiting for it to end")
            client.set_flow_run_state(run_id, Running(name=_WAITING), force=True)
    with concurrency(
        name, lease_duration=LEASE_S,
        # The server may be away for a while; the folder's lock still keeps others out.
        raise_on_lease_renewal_failure=False,
    ):
        # Let a later run find this one, should it be killed and stay open.
        tag_flow_run(campaign_id)
        if waits:
            with get_client(sync_client=True) as client:
                client.set_flow_run_state(run_id, Running(), force=True)
        yield


def untagged_tasks() -> TagsContext:
    """Leave tags out of the runs that are submitted in the block.

    For each task run that has one, Prefect asks its server for a place among those of that tag
    before it begins. A task is found by its flow run as well, and on a machine that computes the
    answer took about two seconds, in which a worker waited for its next shard.
    """
    return TagsContext(current_tags=set())


def stand_for_flow_run(outcome: object, parent: Context) -> None:
    """Let ``outcome`` stand for the current flow run, before that has ended.

    Prefect's graph shows an edge from this run to every run that is called with ``outcome`` in
    ``wait_for``. ``parent`` is a context of the flow that called this one. The run is noted as if
    it were a task's: the graph looks only at ids, and a page that lists the runs of tasks stays
    empty if one of them has a flow run among its inputs.
    """
    state = Running(state_details=StateDetails(task_run_id=UUID(flow_run.id)))
    parent.run(link_state_to_task_run_result, state, outcome)


@dataclass(frozen=True, slots=True)
class CampaignRun:
    """Objects that the flows of one campaign share and Prefect parameters cannot carry."""

    folder: CampaignFolder
    pool: WorkerPool
    board: ProgressBoard
    clock: CampaignClock
    energy: EnergyCounters | None = None
    """None without the extra ``energy``."""


def show_in_mlflow(run: CampaignRun, iteration: int, after: PrefectFuture[Any]) -> bool:
    """Record what MLflow lacks once ``after`` is done; pass on what people should know of it.

    Returns whether MLflow has all of it.
    """
    recorded = record.submit(run.folder, iteration, wait_for=[after]).result()
    if recorded.failure is not None:
        run.board.message(f"not recorded in MLflow yet: {recorded.failure}")
    if recorded.alias_line is not None:
        run.board.message(recorded.alias_line)
    return recorded.failure is None


def show_report(run: CampaignRun, iteration: int, after: Sequence[Any]) -> bool:
    """Write the campaign's page and link it in Prefect; record it and final matches in MLflow.

    Prefect's graph shows these tasks behind ``after``. Returns whether all of it was done.
    """
    written = report.submit(run.folder.path, wait_for=after)
    if (failure := written.result()) is not None:
        run.board.message(f"the report is not written: {failure}")
    else:
        link_report(run.folder)
    return show_in_mlflow(run, iteration, after=written) and failure is None


@dataclass(slots=True, eq=False)
class Handoff:
    """Futures that one iteration waits for, and those that it sets, in different threads."""

    plan: ProgressPlan
    """Plan of the iteration."""
    network: "Future[None] | None"
    """Done when the iteration before has trained the network, if that one runs in this process."""
    predecessor: "Future[Receipt] | None"
    """The receipt of the iteration before, if that one runs in this process."""
    shown_after: Sequence[Any] = ()
    """Results in the campaign's flow run that lead to the iteration in Prefect's graph."""
    played: "Future[None]" = field(default_factory=Future)
    """Done when the next iteration may begin, and wait for its network."""
    trained: "Future[None]" = field(default_factory=Future)
    """Done when the network of the next iteration is there."""
    successor_began: float | None = None
    """Time at which it did, by the monotonic clock."""

    def wait_for_network(self) -> None:
        """Return once the iteration's network is there.

        Raises:
            StoppedError: its training failed or was stopped.
        """
        if self.network is not None and self.network.exception() is not None:
            raise compute.StoppedError("the network that the games need was not trained")

    def wait_for_predecessor(self) -> None:
        """Return once the iteration before has its receipt; raise its error if it failed."""
        if self.predecessor is not None:
            self.predecessor.result()

    def hidden_seconds(self, stage: Stage) -> float:
        """How long the next iteration was under way during ``stage``, which has ended."""
        if self.successor_began is None:
            return 0.0
        return max(0.0, stage.ended - max(stage.began, self.successor_began))
