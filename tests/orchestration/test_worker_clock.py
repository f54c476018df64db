"""Repeated work of a cluster's processes goes on where the clock of the machine jumps."""

import asyncio
import time

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.fault(19)]
pytest.importorskip("distributed")

from tornado.ioloop import PeriodicCallback  # noqa: E402

from chess_snn.tasks.cluster import worker_setup  # noqa: E402

EVERY_MS = 10
LEAST_CALLS = 5


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
def test_heartbeats_go_on_where_the_clock_jumps_bug(monkeypatch, jump_s):
    assert worker_setup.DASK_SETTINGS  # every process of a cluster imports it
    calls: list[float] = []
    wall_s = time.time

    async def jump_and_wait() -> None:
        beat = PeriodicCallback(lambda: calls.append(time.monotonic()), EVERY_MS)
        beat.start()
        await until(lambda: calls)
        monkeypatch.setattr(time, "time", lambda: wall_s() + jump_s)
        calls.clear()
        await until(lambda: len(calls) >= LEAST_CALLS)
        beat.stop()

    asyncio.run(asyncio.wait_for(jump_and_wait(), timeout=30))


async def until(is_so) -> None:
    while not is_so():
        await asyncio.sleep(EVERY_MS / 1000)
