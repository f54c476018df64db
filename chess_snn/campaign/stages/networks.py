"""A campaign's networks, ready to be asked, and the searches that ask them."""

from pathlib import Path
from typing import Final

import numpy as np

from chess_snn import nets, training
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.generations import read_generation
from chess_snn.campaign.store.notes import refuse_removed
from chess_snn.devices import find_devices, is_gpu
from chess_snn.games import Game, get_game
from chess_snn.nets import Evaluator, OwnedEvaluator, Precision
from chess_snn.rng import derive_seed
from chess_snn.search import PolicySearch, Search, make_search
from chess_snn.self_play.starts import draw_starts

FROZEN_SETTINGS = "campaign_settings"
"""Key in the meta of each checkpoint: every setting when it was made."""
_KEPT_NETWORKS: Final = 3
"""The newest, and the two of a match."""
_kept: Final[dict[tuple[Path, str, Precision, str, int], OwnedEvaluator]] = {}
"""The one that was asked for last is the last."""
_GAMES_A_GROUP: Final = 512
"""Games of a group on a GPU, unless there are more than ``_MOST_GROUPS`` such groups. For two
processes of 512 games on an H200, two groups are as fast as four, and 1.5 to 1.8 times as fast as
eight."""
_LEAST_GROUPS, _MOST_GROUPS = 2, 8
"""Groups on a GPU. While one is in the network, the others are in their trees, which takes three
times as long as a network of the size `small` on a large GPU, or more."""

_MEASURED_POSITIONS = 512


def game_of(folder: CampaignFolder) -> Game:
    """The game the campaign learns."""
    return get_game(folder.config.campaign.game)


def device_of(config: CampaignConfig, local_rank: int = 0) -> str:
    """The device of this process; ranks of a training share devices in turns."""
    devices = find_devices(config.execution.device)
    return devices[local_rank % len(devices)]


def evaluator_of(folder: CampaignFolder, generation: int, *, num_threads: int = 1) -> Evaluator:
    """The network of ``generation``, on the device of this process.

    Raises:
        RemovedError: it was removed on purpose.
        CorruptDataError: it is damaged, missing, or of a version that is not read.
    """
    refuse_removed(folder, generation)
    checkpoint = folder.checkpoint(generation)
    digest = str(read_generation(folder, generation).meta["weights_digest"])
    device = device_of(folder.config)
    return _kept_evaluator(checkpoint, digest, folder.config.net.precision, device, num_threads)


def self_play_searches(
    config: CampaignConfig, evaluator: Evaluator, device: str, num_threads: int, simulations: int,
    num_games: int,
) -> list[Search]:
    """The searches of ``num_games`` games at once, one for each group of games.

    One group can be in its trees while another is in the network: two if there are several
    threads; on a GPU at least two, one for ``_GAMES_A_GROUP`` games, at most eight or one a thread.
    """
    num_groups = min(2, num_threads)
    if is_gpu(device):
        most = min(num_threads, _MOST_GROUPS)
        num_groups = max(_LEAST_GROUPS, min(-(-num_games // _GAMES_A_GROUP), most))
    return [
        make_search(
            get_game(config.campaign.game), evaluator, config.search,
            simulations=simulations, num_games=-(-num_games // num_groups),
        )
        for _ in range(num_groups)
    ]


def entropy_ratio(folder: CampaignFolder, evaluator: Evaluator) -> float:
    """Entropy of the policy over that of a uniform one, on positions that games start from."""
    game = game_of(folder)
    starts = draw_starts(
        game, folder.config.self_play, num_games=_MEASURED_POSITIONS,
        seed=derive_seed(folder.config.campaign.seed, "entropy"), progress=0.0,
    )
    batch = game.allocate(_MEASURED_POSITIONS)
    game.reset(batch, np.arange(_MEASURED_POSITIONS), starts.states)
    result = PolicySearch(game, evaluator).run(
        batch,
        np.zeros(_MEASURED_POSITIONS, np.uint64),
        np.zeros(_MEASURED_POSITIONS, np.int32),
        np.zeros(_MEASURED_POSITIONS, np.float32),
    )
    return float(result.prior_entropies.sum() / np.log(batch.num_legal).sum())


def _kept_evaluator(
    checkpoint: Path, digest: str, precision: Precision, device: str, num_threads: int
) -> Evaluator:
    """The network of a checkpoint, kept between the tasks of a warm worker.

    ``digest`` is part of the key so that other weights at the same place are never mistaken. The
    evaluator that was asked for longest ago makes room for a new one, and cannot be used any more.
    """
    key = (checkpoint, digest, precision, device, num_threads)
    evaluator = _kept.pop(key, None)
    if evaluator is None:
        network = training.load_weights_alone(checkpoint)
        is_full = len(_kept) >= _KEPT_NETWORKS
        evaluator = nets.make_evaluator(
            network, device=device, precision=precision, num_threads=num_threads,
            instead_of=_kept.pop(next(iter(_kept))) if is_full else None,
        )
    _kept[key] = evaluator
    return evaluator
