"""Generation 0 of a campaign: the network before it has learnt anything, or what was made of it."""

from pathlib import Path

from chess_snn.campaign.configuration.loading import config_values
from chess_snn.campaign.stages.networks import FROZEN_SETTINGS, entropy_ratio, game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.origin import Origin
from chess_snn.data import Manifest, is_committed, read_manifest
from chess_snn.errors import BeyondRepairError, ChessSnnError
from chess_snn.nets import (
    Network,
    build_network,
    load_network,
    make_evaluator,
    network_digest,
)
from chess_snn.rng import derive_seed
from chess_snn.training import Trainer, save_checkpoint
from chess_snn.types import Json


def prepare_first_generation(folder: CampaignFolder) -> float:
    """Commit generation 0, the untrained network or the one it starts from.

    Returns:
        Entropy of its policy over that of a uniform one, in [0, 1], on positions games start from.

    Raises:
        BeyondRepairError: it started from a network, has lost it, and cannot get it again.
    """
    if not is_committed(folder.checkpoint(0)):
        config = folder.config
        network = build_network(
            game_of(folder).spec, config.net.network(),
            derive_seed(config.campaign.seed, "network"), config.net.policy_gain,
        )
        commit_first_generation(
            folder, network if folder.origin is None else _given_network(folder.origin), {}
        )
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
        "generation": 0, "entropy_ratio": ratio,
        "positions_played": 0 if folder.origin is None else folder.origin.positions,
        FROZEN_SETTINGS: config_values(config), **facts,
    })


def _given_network(origin: Origin) -> Network:
    """The network that a campaign started from, where it still lies where it was taken from."""
    fault = "its place is not known"
    if origin.weights:
        try:
            network = load_network(Path(origin.weights))
            if network_digest(network) == origin.weights_digest:
                return network
            fault = f"{origin.weights} holds another network now"
        except ChessSnnError as error:
            fault = str(error)
    raise BeyondRepairError(
        f"generation 0 is {origin.reference}, which cannot be taken again ({fault}); restore its "
        "checkpoint from a copy"
    )


def first_entropy_ratio(folder: CampaignFolder) -> float:
    """Entropy of generation 0's policy over that of a uniform one, in [0, 1]."""
    return float(read_manifest(folder.checkpoint(0)).meta["entropy_ratio"])
