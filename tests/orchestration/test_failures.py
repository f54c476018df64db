"""An error on a worker is one line that names the work and the fix."""

import resource

import numpy as np
import pytest
import torch

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(300)]
pytest.importorskip("prefect")

from distributed import Client, LocalCluster  # noqa: E402

from chess_snn.errors import (  # noqa: E402
    CorruptDataError,
    MemoryExhaustedError,
    TrainingDivergedError,
    WorkersLostError,
)
from chess_snn.failpoints import FailpointError  # noqa: E402
from chess_snn.tasks import compute  # noqa: E402
from chess_snn.tasks.compute import DEVICE, run_on_device  # noqa: E402
from chess_snn.tasks.remote import plain_error  # noqa: E402

LIMIT_BYTES = 64 << 30
"""Address space: above what libraries map, far below what is asked for."""
WANTED_BYTES = 1 << 40


def play_shard(directory: str, iteration: int, shard: int) -> int:
    """Take more memory than the worker may have."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    if shard == 0:
        return np.empty(WANTED_BYTES, np.uint8).nbytes
    return torch.empty(WANTED_BYTES, dtype=torch.uint8).nbytes


@pytest.mark.fault(14)
@pytest.mark.slow
def test_a_worker_without_memory_is_told_as_such_and_lives() -> None:
    compute.start()
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, resources={DEVICE: 1}, dashboard_address=None,
        ) as cluster,
        Client(cluster),
    ):
        for shard in (0, 1):
            message = rf"play_shard\(3, {shard}\)"
            with pytest.raises(MemoryExhaustedError, match=message):
                run_on_device(play_shard, "/campaign", 3, shard)


@pytest.mark.parametrize("error", [ValueError("else"), RuntimeError("size mismatch")])
def test_what_is_not_known_stays_what_it_is(error: Exception) -> None:
    assert plain_error(error, (play_shard, "/campaign", 3, 0)) is None


@pytest.mark.fault(13)
def test_a_device_without_memory_is_told_as_such() -> None:
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB\nmore")
    plain = plain_error(error, (play_shard, "/campaign", 3, 0))
    assert isinstance(plain, MemoryExhaustedError)
    assert "the device's memory ran out in play_shard(3, 0) (CUDA out of memory. " in str(plain)
    assert "\n" not in str(plain)


class Failed:
    """A state of a task that ended with an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def result(self, raise_on_failure: bool) -> Exception:
        assert not raise_on_failure
        return self.error


@pytest.mark.parametrize(("error", "again"), [
    (MemoryExhaustedError("later there may be more"), True),
    (WorkersLostError("they may have died of something else"), True),
    (FailpointError("a fault that nothing expects"), True),
    (CorruptDataError("the same bytes"), False),
    (TrainingDivergedError("the same samples"), False),
])
def test_what_may_do_better_is_tried_again(error: Exception, again: bool) -> None:
    assert compute.is_worth_retrying(None, None, Failed(error)) is again
