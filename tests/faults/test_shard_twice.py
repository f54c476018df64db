"""One shard played by two processes at once: one commit wins, and both return it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from campaign_driver import FINISH_TIMEOUT_S, faults_at, wait_until
from small_campaigns import MICRO

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.data import read_manifest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PLAY = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from chess_snn.campaign.stages import play_shard
print(json.dumps(asdict(play_shard(Path(sys.argv[1]), 0, 0))))
"""


def start(path: Path, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PLAY, str(path)], stdout=subprocess.PIPE, text=True,
        env=os.environ | (environment or {}),
    )


@pytest.mark.fault(18)
@pytest.mark.parametrize("place", ["shard.played", "shard.sealed"])
def test_of_two_that_play_a_shard_both_return_the_one_that_is_there(
    tmp_path: Path, place: str
) -> None:
    folder = CampaignFolder.create(tmp_path / "c", load_config(settings=MICRO))
    prepare_first_generation(folder)
    begin_iteration(folder, 0, 0.0)
    fired, target = tmp_path / "fired", folder.shard(0, 0)
    late = start(folder.path, faults_at(fired, **{place: "hold"}))
    try:
        wait_until((fired / place).exists, late, tmp_path / "no-log")
        early = start(folder.path)
        told_early, _ = early.communicate(timeout=FINISH_TIMEOUT_S)
        committed = read_manifest(target)
        (fired / place).unlink()  # let the other one go on, to find it committed
        told_late, _ = late.communicate(timeout=FINISH_TIMEOUT_S)
    finally:
        late.kill()
        late.wait()
    assert (early.returncode, late.returncode) == (0, 0)
    assert json.loads(told_late) == json.loads(told_early)
    assert read_manifest(target) == committed
    assert [path.name for path in target.parent.iterdir()] == [target.name]
