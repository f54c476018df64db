"""Generation 0 of a campaign: the network before it has learnt anything, or what was made of it."""

from chess_snn.campaign.configuration.loading import config_values
from chess_snn.campaign.stages.networks import entropy_ratio, game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.preflight import FROZEN_SETTINGS
from chess_snn.data import Manifest, is_committed, read_manifest
from chess_snn.nets import Network, build_network, make_evaluator
from chess_snn.rng import derive_seed
from chess_snn.training import Trainer, save_checkpoint
from chess_snn.types import Json


def prepare_first_generation(folder: CampaignFolder) -> float:
    """Commit generation 0, the untrained network; how soft its policy is.

    Returns:
        Entropy of its policy over that of a uniform one, in [0, 1], on positions games start from.
        Below 0.9, games must undo prejudices first.
    """
    if not is_committed(folder.checkpoint(0)):
        config = folder.config
        network = build_network(
            game_of(folder).spec, config.net.network(),
            derive_seed(config.campaign.seed, "network"), config.net.policy_gain,
        )
        commit_first_generation(folder, network, {})
    return first_entropy_ratio(folder)


def commit_first_generation(folder: CampaignFolder, network: Network, facts: Json) -> Manifest:
    """Commit ``network`` as generation 0, with ``facts`` beside those of every generation.

    Its optimiser is a new one: whatever made the network, the campaign's schedule begins here.
    """
    config = folder.config
    with make_evaluator(network, precision=config.net.precision) as evaluator:
        ratio = entropy_ratio(folder, evaluator)
    trainer = Trainer(
        game_of(folder), network, config.training, derive_seed(config.campaign.seed, "training")
    )
    return save_checkpoint(folder.checkpoint(0), trainer, meta={
        "generation": 0, "positions_played": 0, "entropy_ratio": ratio,
        FROZEN_SETTINGS: config_values(config), **facts,
    })


def first_entropy_ratio(folder: CampaignFolder) -> float:
    """Entropy of generation 0's policy over that of a uniform one, in [0, 1]."""
    return float(read_manifest(folder.checkpoint(0)).meta["entropy_ratio"])
