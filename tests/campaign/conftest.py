from pathlib import Path

import pytest
from small_campaigns import MICRO

from chess_snn.campaign import CampaignFolder, load_config


@pytest.fixture
def new_folder(tmp_path):
    """Make a campaign folder of the smallest settings, with ``changes``."""

    def make(name: str = "campaign", *changes: str, parent: Path = tmp_path) -> CampaignFolder:
        return CampaignFolder.create(parent / name, load_config(settings=[*MICRO, *changes]))

    return make
