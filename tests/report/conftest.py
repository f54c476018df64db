import sys
from pathlib import Path

import pytest
import small_campaigns as made

from chess_snn.campaign import CampaignFolder

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def chess_campaign(tmp_path_factory) -> CampaignFolder:
    """A finished one, with games of the network against others that someone won."""
    return made.play_campaign(
        tmp_path_factory.mktemp("chess") / "campaign", "evaluation.max_plies=200",
        "evaluation.num_openings=3", 'evaluation.opponents=["random", "minimax:2"]',
    )


@pytest.fixture(scope="session")
def campaign_2048(tmp_path_factory) -> CampaignFolder:
    return made.play_campaign(
        tmp_path_factory.mktemp("2048") / "campaign", settings=made.MICRO_2048
    )
