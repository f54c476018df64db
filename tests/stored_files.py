"""Reads the files of tests/data/stored; see tests/data/make_stored_campaign.py."""

import shutil
from pathlib import Path

from chess_snn.campaign import CampaignFolder

STORED = Path(__file__).parent / "data" / "stored"
ARCHIVES = sorted(STORED.glob("*.tar.xz"))
"""Finished campaigns of two iterations, two shards each, as the program of their day wrote them:
``GAME-DATE.tar.xz``."""


def copy_campaign(parent: Path) -> CampaignFolder:
    """A copy of the newest campaign of chess."""
    return unpack(max(STORED.glob("chess-*")), parent)


def unpack(archive: Path, parent: Path) -> CampaignFolder:
    """A copy of a campaign; beside it, the games that it was pretrained on."""
    shutil.unpack_archive(archive, parent)
    return CampaignFolder.open(parent / "campaign")
