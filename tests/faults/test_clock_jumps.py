"""The wall clock jumps an hour ahead and back while a campaign runs; nobody notices."""

import os
from pathlib import Path

import pytest
from campaign_driver import SMALL_OPTIONS, dask_workers, finish, launch, wait_until
from small_campaigns import assert_same_campaign, committed_shards

from chess_snn.data import is_committed

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(7200)]

HOUR_S = 3600
JUMPS_S = {HOUR_S, -HOUR_S, 2 * HOUR_S}


def jumps_seen_by(process: int, seen: Path) -> set[int]:
    """The offsets that the made clock told a process the time with, without none."""
    offsets = {int(mark.name.partition(".")[2]) for mark in seen.glob(f"{process}.*")}
    return offsets - {0}


@pytest.mark.fault(19)
def test_a_campaign_does_not_notice_that_the_clock_jumps(
    tmp_path: Path, undisturbed_small: Path
) -> None:
    path, log, clock = tmp_path / "c", tmp_path / "log", tmp_path / "clock"
    seen = tmp_path / "seen"
    seen.mkdir()

    def set_clock(seconds: int) -> None:
        clock.with_suffix(".new").write_text(str(seconds))
        clock.with_suffix(".new").replace(clock)

    set_clock(0)
    here = Path(__file__).parent
    python_path = f"{here / 'jumping_clock'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    process = launch(
        "start", "--dir", str(path), *SMALL_OPTIONS, log=log,
        environment={
            "PYTHONPATH": python_path, "JUMPING_CLOCK": str(clock), "JUMPING_CLOCK_SEEN": str(seen),
        },
    )
    wait_until(lambda: len(committed_shards(path, 0)) >= 1, process, log)
    workers = [worker.pid for worker in dask_workers(process)]
    set_clock(HOUR_S)
    wait_until(lambda: is_committed(path / "checkpoints" / "gen-000001"), process, log)
    set_clock(-HOUR_S)
    wait_until(lambda: len(committed_shards(path, 1)) >= 1, process, log)
    set_clock(2 * HOUR_S)
    assert [worker.pid for worker in dask_workers(process)] == workers, "one was replaced"
    finish(process, log)
    assert jumps_seen_by(process.pid, seen) >= JUMPS_S, "the campaign's own clock stayed"
    assert any(jumps_seen_by(worker, seen) >= JUMPS_S for worker in workers), "no worker's moved"
    text = log.read_text()
    assert "it is killed" not in text
    assert "another is started" not in text
    assert_same_campaign(path, undisturbed_small)
