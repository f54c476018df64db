"""A campaign whose disk is full stops with one line, loses nothing, and goes on when there is room.

A small disk is mounted over the campaign's games, in a name space that ends with the test.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from campaign_driver import GROWING
from small_campaigns import assert_same_campaign, committed_shards

from chess_snn.campaign import CampaignFolder, load_config

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(7200)]

ROOM = "40k"
"""A shard takes 16 KiB of a disk's pages: two fit, and an iteration has more."""

RUN = """
set -e
resume() { "$PYTHON" -m chess_snn campaign resume "$CAMPAIGN" >>"$LOG" 2>&1; }
mount -t tmpfs -o size=$ROOM tmpfs "$CAMPAIGN/games"
code=0; resume || code=$?
echo "$code" >"$RESULT"
cp -r "$CAMPAIGN/games" "$BEFORE"
mount -o remount,size=64m "$CAMPAIGN/games"
resume
cp -r "$CAMPAIGN/games" "$AFTER"
"""


def in_a_name_space(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script],
        env=os.environ | environment, check=False, capture_output=True, text=True, timeout=1200,
    )


@pytest.mark.fault(12)
def test_a_full_disk_stops_a_campaign_resumably(tmp_path: Path, undisturbed_small: Path) -> None:
    probe = 'mount -t tmpfs tmpfs "$PLACE"'
    if shutil.which("unshare") is None or in_a_name_space(
        probe, {"PLACE": str(tmp_path)}
    ).returncode:
        pytest.skip("mounting a small disk is not allowed here")
    folder = CampaignFolder.create(tmp_path / "c", load_config("smoke", settings=GROWING))
    games = folder.path / "games"
    games.mkdir()
    log, result = tmp_path / "log", tmp_path / "code"
    before, after = tmp_path / "before" / "games", tmp_path / "after"
    before.parent.mkdir()
    run = in_a_name_space(RUN, {
        "ROOM": ROOM, "PYTHON": sys.executable, "CAMPAIGN": str(folder.path), "LOG": str(log),
        "RESULT": str(result), "BEFORE": str(before), "AFTER": str(after),
    })
    text = log.read_text()
    assert run.returncode == 0, run.stderr + text[-3000:]
    assert result.read_text().strip() == "2", "the disk was not full: the test showed nothing"
    assert "No space left on device" in text
    assert "Traceback" not in text

    games.rmdir()
    shutil.copytree(after, games)
    committed = committed_shards(before.parent, 0)
    assert 1 <= len(committed) < 3, "the disk was full too soon or too late"
    for shard in committed:  # it stayed as it was
        assert shard.read_bytes() == (games / shard.relative_to(before)).read_bytes()
    assert_same_campaign(folder.path, undisturbed_small)
