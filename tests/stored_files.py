"""What is stored under tests/data/stored; see tests/data/make_stored_campaign.py."""

import shutil
from pathlib import Path

from chess_snn.campaign import CampaignFolder

STORED = Path(__file__).parent / "data" / "stored"


def copy_campaign(parent: Path) -> CampaignFolder:
    """A finished campaign of two iterations with two shards of three games each."""
    shutil.copytree(STORED / "campaign", parent / "campaign")
    return CampaignFolder.open(parent / "campaign")
