"""Whether anything of a campaign is left to do."""

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.plans import next_plan
from chess_snn.campaign.store.receipts import num_finished_iterations, recorded_seconds
from chess_snn.campaign.strength.matches import final_matches


def is_finished(folder: CampaignFolder) -> bool:
    """Whether every iteration has its receipt, none is to follow, and the last matches are played.

    Raises:
        CorruptDataError: a receipt or plan is damaged.
    """
    following = num_finished_iterations(folder)
    if folder.plan(following).exists():
        return False
    if next_plan(folder, following, recorded_seconds(folder)) is not None:
        return False
    return all(folder.match(m.event, m.name).exists() for m in final_matches(folder))
