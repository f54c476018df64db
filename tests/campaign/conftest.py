import subprocess
import sys
from pathlib import Path

import pytest
from small_campaigns import MICRO

from chess_snn.campaign import CampaignFolder, load_config

USUAL = (
    "self_play.games_per_shard=4", "self_play.restart_share_last=0.2", "evaluation.max_plies=6",
    "evaluation.simulations=2", "evaluation.final_openings=0", "evaluation.final_simulations=64",
    "promotion.rule=sprt",
)
"""Settings of tests of matches and champions that the small ones make smaller or simpler."""


@pytest.fixture
def new_folder(tmp_path):
    """Make a campaign folder of the smallest settings, with ``changes``."""

    def make(name: str = "campaign", *changes: str, parent: Path = tmp_path) -> CampaignFolder:
        config = load_config(settings=[*MICRO, *USUAL, *changes])
        return CampaignFolder.create(parent / name, config)

    return make


@pytest.fixture
def folder(new_folder):
    """One of these settings."""
    return new_folder()


HOLDER = """
import sys, time
from pathlib import Path
from chess_snn.campaign import CampaignFolder, campaign_lock
with campaign_lock(CampaignFolder.open(Path(sys.argv[1]))):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def lock_elsewhere():
    """Have another process lock a campaign; returns the process."""
    holders = []

    def start(folder: CampaignFolder) -> subprocess.Popen:
        command = [sys.executable, "-c", HOLDER, folder.path]
        holders.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert holders[-1].stdout.readline() == "held\n"
        return holders[-1]

    yield start
    for holder in holders:
        holder.kill()
        holder.wait()
