"""What is stored under tests/data/stored; see tests/data/make_stored_campaign.py."""

import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from chess_snn.campaign import CampaignFolder
from chess_snn.nets import NetConfig
from chess_snn.nets.model.config import SIZES

STORED = Path(__file__).parent / "data" / "stored"
OLDEST = STORED / "campaign"
"""A finished campaign of two iterations with two shards of three games each."""
ARCHIVES = sorted(STORED.glob("*.tar.xz"))
"""Later ones, each as the program of its day wrote it: ``GAME-DATE.tar.xz``."""


def copy_campaign(parent: Path) -> CampaignFolder:
    """A copy of the oldest campaign."""
    shutil.copytree(OLDEST, parent / "campaign")
    return CampaignFolder.open(parent / "campaign")


@contextmanager
def networks_of_the_oldest() -> Iterator[None]:
    """Make its smaller `net.size = "tiny"`, and its shorter mismatches, within the block."""
    smaller = NetConfig(blocks=1, channels=8, ticks=2, value_channels=2, value_hidden=8)
    shorter = patch("chess_snn.self_play.starts.MISMATCH_PLIES", 10)
    with patch.dict(SIZES, tiny=smaller), shorter:
        yield


def unpack(archive: Path, parent: Path) -> CampaignFolder:
    """A finished campaign of two iterations; beside it, the games that it was pretrained on."""
    with tarfile.open(archive) as packed:
        packed.extractall(parent, filter="data")
    return CampaignFolder.open(parent / "campaign")
