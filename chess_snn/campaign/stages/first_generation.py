"""Generation 0 of a campaign: a new network, one from elsewhere, or one trained on a dataset.

Making it is a stage as those of :mod:`chess_snn.campaign.stages`: it may be killed and repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from chess_snn import nets, training
from chess_snn.campaign.configuration.loading import config_values
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.stages.dataset import fixed_dataset, schedule_of
from chess_snn.campaign.stages.networks import FROZEN_SETTINGS, device_of, entropy_ratio, game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.origin import Origin
from chess_snn.data import Manifest, is_committed, read_manifest
from chess_snn.data.files import remove
from chess_snn.errors import BeyondRepairError, ChessSnnError, UsageError
from chess_snn.games import get_game
from chess_snn.later import torch
from chess_snn.rng import derive_seed
from chess_snn.training import ALONE, Ranks
from chess_snn.types import Json, Progress

SUPERVISED: Final = "supervised"
"""Under this name the manifest of generation 0 keeps what it learnt from, and how that went."""
_S_PER_MINUTE: Final = 60.0


def is_warm(folder: CampaignFolder) -> bool:
    """Return whether generation 0 learns from a dataset."""
    return bool(folder.config.supervised.games)


def begins_trained(folder: CampaignFolder) -> bool:
    """Return whether generation 0 is trained: on a dataset, or where it was taken from."""
    origin = folder.origin
    return is_warm(folder) or (origin is not None and origin.forked_at is None)


def prepare_first_generation(folder: CampaignFolder) -> float:
    """Commit generation 0, the untrained network or the one it starts from.

    Returns:
        Entropy of its policy over that of a uniform one, in [0, 1], on positions games start from.

    Raises:
        BeyondRepairError: it started from a network, has lost it, and cannot get it again.
    """
    if not is_committed(folder.checkpoint(0)):
        commit_first_generation(folder, _starting_network(folder), {})
    return first_entropy_ratio(folder)


def train_first_generation(
    directory: Path, *, num_threads: int = 1, on_progress: Progress | None = None,
    on_step: training.StepListener | None = None, ranks: Ranks = ALONE,
) -> Json:
    """Train generation 0 on the games of the configuration, and commit it.

    It begins as an untrained network, or as the one that the campaign starts from. Where several
    ``ranks`` train it together, rank 0 commits.

    Returns:
        What :func:`supervised_facts` returns from now on.

    Raises:
        UsageError: the games are not there any more, or others than at the start.
        CorruptDataError: a shard or a checkpoint is damaged.
        RankLostError: a rank died or froze; the last checkpoint on the way stays.
        BeyondRepairError: the network that it starts from is not there any more.
    """
    folder = CampaignFolder.open(directory)
    if not is_committed(folder.checkpoint(0)):
        torch.set_num_threads(num_threads)
        trainer, facts = learn_dataset(
            folder.config, partial(_starting_network, folder), folder.supervised,
            {FROZEN_SETTINGS: config_values(folder.config)}, on_progress, on_step, ranks,
        )
        if not ranks.is_first:
            return facts
        commit_first_generation(folder, trainer.playing_network.cpu(), {SUPERVISED: facts})
    with suppress(UsageError, OSError):  # of no more use, and no harm
        remove(folder.supervised)
    return first_facts(folder)


def first_facts(folder: CampaignFolder) -> Json:
    """Return what the committed generation 0 learnt from a dataset; see below."""
    facts = supervised_facts(folder)
    assert facts is not None
    return facts


def supervised_facts(folder: CampaignFolder) -> Json | None:
    """Return what generation 0 learnt from (``games``) and how that went (``points``).

    ``ranks`` is the number of ranks that trained it; networks of the first versions do not have it.
    None where no games are given, and before generation 0 is there.
    """
    if not is_warm(folder) or not is_committed(folder.checkpoint(0)):
        return None
    facts: Json = read_manifest(folder.checkpoint(0)).meta[SUPERVISED]
    return facts


def learn_dataset(
    config: CampaignConfig, begin_with: Callable[[], nets.Network], folder: Path, meta: Json,
    on_progress: Progress | None, on_step: training.StepListener | None, ranks: Ranks,
) -> tuple[training.Trainer, Json]:
    """Train a network on the games of ``config``, which are fixed, or go on with that.

    Checkpoints on the way go into ``folder``, with ``meta`` in their manifests. ``on_progress`` is
    called after every step with (steps done, steps in all).

    Returns:
        The trainer at the end, and what is kept beside its network: the games and the figures.

    Raises:
        UsageError: the games are not there any more, or others than at the start.
        CorruptDataError: a shard or a checkpoint is damaged.
        RankLostError: a rank died or froze; the last checkpoint on the way stays.
    """
    given, game = fixed_dataset(config), get_game(config.campaign.game)
    device = device_of(config, ranks.local_rank)

    def begin() -> training.Trainer:
        return training.Trainer(
            game, begin_with(), config.supervised.applied_to(config.training),
            derive_seed(config.campaign.seed, SUPERVISED), device, ranks=ranks,
        )

    trainer, points = training.train_supervised(
        game, schedule_of(given, config), begin, folder, device=device, meta=meta, ranks=ranks,
        checkpoint_s=_S_PER_MINUTE * config.supervised.checkpoint_minutes,
        on_progress=on_progress, on_step=on_step,
    )
    return trainer, {"games": given.to_json(), "points": points, "ranks": ranks.size}


def commit_first_generation(folder: CampaignFolder, network: nets.Network, facts: Json) -> Manifest:
    """Commit ``network`` as generation 0, with ``facts`` beside those of every generation.

    Its optimiser is a new one: whatever made the network, the campaign's schedule begins here.
    """
    config = folder.config
    with nets.make_evaluator(network, precision=config.net.precision) as evaluator:
        ratio = entropy_ratio(folder, evaluator)
    trainer = training.Trainer(
        game_of(folder), network, config.training, derive_seed(config.campaign.seed, "training")
    )
    return training.save_checkpoint(folder.checkpoint(0), trainer, meta={
        "generation": 0, "entropy_ratio": ratio,
        "positions_played": 0 if folder.origin is None else folder.origin.positions,
        FROZEN_SETTINGS: config_values(config), **facts,
    })


def new_network(config: CampaignConfig) -> nets.Network:
    """The untrained network that ``config`` describes."""
    return nets.build_network(
        get_game(config.campaign.game).spec, config.net.network(),
        derive_seed(config.campaign.seed, "network"), config.net.readout_gain,
    )


def _starting_network(folder: CampaignFolder) -> nets.Network:
    """Untrained, or the one that the campaign starts from; see :func:`_given_network`."""
    if folder.origin is None:
        return new_network(folder.config)
    return fitted_network(_given_network(folder.origin), folder.config)


def fitted_network(network: nets.Network, config: CampaignConfig) -> nets.Network:
    """``network``, from elsewhere, in the shape that ``config`` has at first."""
    return network.with_config(config.net.network(), derive_seed(config.campaign.seed, "network"))


def _given_network(origin: Origin) -> nets.Network:
    """The network that a campaign started from, where it still lies where it was taken from."""
    fault = "its place is not known"
    if origin.weights:
        try:
            network = nets.load_network(Path(origin.weights))
            if nets.network_digest(network) == origin.weights_digest:
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
