import pytest

from chess_snn.campaign import CampaignFolder


@pytest.fixture(scope="session")
def chess_campaign(kept_campaign) -> CampaignFolder:
    """A finished one, with games of the network against others that someone won."""
    return kept_campaign(
        "chess-to-report", "evaluation.max_plies=200", "evaluation.num_openings=3",
        'evaluation.opponents=["random", "minimax:2"]',
    )
