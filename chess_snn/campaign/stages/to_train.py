"""Which generation of a campaign is to be trained next."""

from chess_snn.campaign.store.dealing import shard_paths
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.plans import read_plans
from chess_snn.campaign.store.removals import is_removed
from chess_snn.data import is_committed
from chess_snn.errors import CampaignError


def iteration_to_train(folder: CampaignFolder, wanted: int | None = None) -> int:
    """The first iteration that has played and not trained; or ``wanted``, if that has played.

    Raises:
        CampaignError: there is none, or its games are not all there.
    """
    if wanted is None:
        begun = (plan.iteration for plan in read_plans(folder))
        wanted = next((i for i in begun if is_untrained(folder, i)), None)
    if wanted is None:
        raise CampaignError(
            f"{folder.path} has trained every iteration that it began; go on with it: "
            f"chess-snn campaign resume {folder.path}"
        )
    if not folder.plan(wanted).exists():
        raise CampaignError(
            f"{folder.path} has not begun iteration {wanted}; begin it: "
            f"chess-snn campaign resume {folder.path}"
        )
    shards = shard_paths(folder, wanted)
    num_played = sum(map(is_committed, shards))
    if num_played < len(shards):
        raise CampaignError(
            f"{folder.path} has {num_played} of {len(shards)} shards of iteration {wanted}, and "
            f"trains on all of them; play the others: chess-snn campaign resume {folder.path}"
        )
    return wanted


def is_untrained(folder: CampaignFolder, iteration: int) -> bool:
    """Whether nobody has trained on the games of ``iteration`` yet."""
    target = folder.checkpoint(iteration + 1)
    return not is_committed(target) and not is_removed(folder, target)
