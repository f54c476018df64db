"""A campaign that does not begin from nothing: generation 0 has learnt from given games.

One stage, as those of :mod:`chess_snn.campaign.stages`: it may be killed and repeated.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

import torch

from chess_snn.campaign.configuration.loading import config_values
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.stages import commit_first_generation
from chess_snn.campaign.stages.given_games import GivenGames, course_through, fixed_games
from chess_snn.campaign.stages.networks import FROZEN_SETTINGS, device_of, game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.data import is_committed, read_manifest
from chess_snn.data.files import remove
from chess_snn.errors import UsageError
from chess_snn.games import Game
from chess_snn.nets import build_network
from chess_snn.rng import derive_seed
from chess_snn.training import ALONE, Points, Ranks, StepListener, Trainer, train_supervised
from chess_snn.types import Json, Progress

SUPERVISED: Final = "supervised"
"""Under this name the manifest of generation 0 keeps what it learnt from, and how that went."""
_S_PER_MINUTE: Final = 60.0


def is_warm(folder: CampaignFolder) -> bool:
    """Whether generation 0 learns from given games."""
    return bool(folder.config.supervised.games)


def train_first_generation(
    directory: Path, *, num_threads: int = 1, on_progress: Progress | None = None,
    on_step: StepListener | None = None, ranks: Ranks = ALONE,
) -> Json:
    """Train generation 0 on the games of the configuration, and commit it.

    Where several ``ranks`` train it together, rank 0 commits.

    Returns:
        What :func:`supervised_facts` returns from now on.

    Raises:
        UsageError: the games are not there any more, or others than at the start.
        CorruptDataError: a shard or a checkpoint is damaged.
        RankLostError: a rank died or froze; the last checkpoint on the way stays.
    """
    folder = CampaignFolder.open(directory)
    if not is_committed(folder.checkpoint(0)):
        given = fixed_games(folder.config)
        torch.set_num_threads(num_threads)
        device = device_of(folder, ranks.local_rank)
        trainer, points = train_supervised(
            game_of(folder), course_through(given, folder.config),
            lambda: supervised_trainer(game_of(folder), folder.config, device, ranks),
            folder.supervised, device=device, on_progress=on_progress, on_step=on_step,
            checkpoint_s=_S_PER_MINUTE * folder.config.supervised.checkpoint_minutes,
            meta={FROZEN_SETTINGS: config_values(folder.config)}, ranks=ranks,
        )
        facts = supervised_json(given, points, ranks)
        if not ranks.is_first:
            return facts
        commit_first_generation(folder, trainer.network.cpu(), {SUPERVISED: facts})
    with suppress(UsageError, OSError):  # of no more use, and no harm
        remove(folder.supervised)
    return first_facts(folder)


def first_facts(folder: CampaignFolder) -> Json:
    """What generation 0, which is committed, learnt from given games; see below."""
    facts = supervised_facts(folder)
    assert facts is not None
    return facts


def supervised_facts(folder: CampaignFolder) -> Json | None:
    """What generation 0 learnt from (``games``) and how that went (``points``).

    ``ranks`` is the number of ranks that trained it; networks of the first versions do not have it.
    None where no games are given, and before generation 0 is there.
    """
    if not is_warm(folder) or not is_committed(folder.checkpoint(0)):
        return None
    facts: Json = read_manifest(folder.checkpoint(0)).meta[SUPERVISED]
    return facts


def supervised_trainer(
    game: Game, config: CampaignConfig, device: str, ranks: Ranks = ALONE
) -> Trainer:
    """An untrained network, about to learn from given games."""
    seed = config.campaign.seed
    network = build_network(
        game.spec, config.net.network(), derive_seed(seed, "network"), config.net.policy_gain
    )
    training = config.supervised.applied_to(config.training)
    return Trainer(
        game, network, training, derive_seed(seed, SUPERVISED), device, ranks=ranks
    )


def supervised_json(given: GivenGames, points: Points, ranks: Ranks) -> Json:
    """What is kept beside a network that learnt from given games."""
    return {"games": given.to_json(), "points": points, "ranks": ranks.size}
