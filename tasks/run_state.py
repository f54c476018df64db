"""The state of a Prefect task run while it waits for a worker: Pending, and not Running.

Prefect sets a task run to Running when its function begins. Ours first wait for a Dask worker, so
they set their own state; Prefect records it as it records the states that it sets itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from prefect.client.schemas.objects import State, TaskRun
from prefect.context import TaskRunContext
from prefect.states import Pending, Running
from prefect.utilities.engine import emit_task_run_state_change_event

WAITING: Final = "waiting for a worker"
"""Message of the Pending state."""


@contextmanager
def pending() -> Iterator[None]:
    """Set the task run that this code belongs to Pending for the length of the block.

    It is Running again afterwards, unless the block raises. Code outside of a task runs as it is.
    """
    context = TaskRunContext.get()
    if context is None:
        yield
        return
    _set_state(context.task_run, Pending(message=WAITING))
    yield
    _set_state(context.task_run, Running())


def _set_state(run: TaskRun, state: State[Any]) -> None:
    before = run.state
    state.state_details.task_run_id, state.state_details.flow_run_id = run.id, run.flow_run_id
    run.state, run.state_id = state, state.id
    run.state_type, run.state_name = state.type, state.name
    if state.is_running():  # the page shows how long it ran from here on
        run.start_time = state.timestamp
    emit_task_run_state_change_event(task_run=run, initial_state=before, validated_state=state)
