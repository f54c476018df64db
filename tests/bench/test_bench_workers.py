"""When workers computed, as ``python -m benchmarks workers`` notes it."""

import logging
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(60)]
pytest.importorskip("distributed")
pytest.importorskip("prefect")

from distributed import Client, LocalCluster  # noqa: E402

from benchmarks.workers import noted_busy_times, union_s  # noqa: E402
from chess_snn.tasks.compute import DEVICE, run_all_on_devices  # noqa: E402

SLEEP_S = 0.1


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted)))
def test_the_union_counts_each_moment_once(intervals):
    covered = {moment for began, ended in intervals for moment in range(began, ended)}
    assert union_s(tuple(interval) for interval in intervals) == len(covered)


def test_what_workers_did_is_noted_with_its_time():
    with (
        noted_busy_times() as intervals,
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, resources={DEVICE: 1},
            dashboard_address=None, silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster),
    ):
        began = time.time()
        run_all_on_devices([(time.sleep, SLEEP_S)] * 4)
        ended = time.time()
    assert len(intervals) == 4
    assert sum(stop - start for start, stop in intervals) >= 4 * SLEEP_S
    assert 2 * SLEEP_S <= union_s(intervals) <= ended - began
