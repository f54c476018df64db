"""What is read to make each artifact: see :class:`chess_snn.campaign.artifacts.artifact.Input`.

A worker that sees the campaign folder needs none of this. For one that does not, exactly this is
fetched (:mod:`chess_snn.campaign.worker_cache`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chess_snn.campaign.artifacts.artifact import Input, Key
from chess_snn.campaign.stages import prepare_first_generation, train_generation, window_shards
from chess_snn.campaign.stages.self_play import shard_values
from chess_snn.campaign.stages.warm_start import is_warm, train_first_generation
from chess_snn.campaign.store.folder import CampaignFolder, file_name
from chess_snn.campaign.store.notes import is_removed
from chess_snn.campaign.strength.matches import NetworkPlayer, ScheduledMatch
from chess_snn.errors import BeyondRepairError, RemovedError
from chess_snn.training import WEIGHTS


def shard_inputs(folder: CampaignFolder, iteration: int, shard: int) -> Iterator[Input]:
    """A network's weights, and earlier games to restart from."""
    yield _weights(folder, iteration)
    for name in shard_values(folder, iteration, shard).earlier:
        yield Input(folder.path / name)


def checkpoint_inputs(folder: CampaignFolder, generation: int) -> Iterator[Input]:
    """The generation before, with its optimiser, and the replay window; none of generation 0.

    Raises:
        RemovedError: the games were removed.
    """
    if generation == 0:
        return
    iteration = generation - 1
    if is_removed(folder, folder.shard(iteration, 0)):
        raise RemovedError(
            f"generation {generation} cannot be trained again: its games were removed by "
            "`chess-snn gc`"
        )
    yield Input(folder.checkpoint(iteration))
    yield from map(Input, window_shards(folder, iteration))


def match_part_inputs(folder: CampaignFolder, match: ScheduledMatch, part: int) -> Iterator[Input]:
    """The weights of the networks that play."""
    del part
    players = (match.player, match.opponent)
    networks = {player.generation for player in players if isinstance(player, NetworkPlayer)}
    return (_weights(folder, generation) for generation in sorted(networks))


def match_part_key(match: ScheduledMatch, part: int) -> Key:
    """Of the part's path."""
    return match.event, file_name(match.name), part


def report_inputs(folder: CampaignFolder, generation: int) -> Iterator[Input]:
    """Of a conversion report or a ladder test: the network's weights."""
    yield _weights(folder, generation)


def make_checkpoint(directory: Path, generation: int) -> Any:
    """Train or prepare ``generation``."""
    if generation > 0:
        return train_generation(directory, generation - 1)
    folder = CampaignFolder.open(directory)
    if is_warm(folder):
        return train_first_generation(directory)
    return prepare_first_generation(folder)


def refuse_inherited_shard(directory: Path, origin: str, shard: int) -> None:
    """Raise a BeyondRepairError: another campaign played this shard."""
    raise BeyondRepairError(
        f"shard {shard} of {origin} was played by another campaign than {directory}"
    )


def _weights(folder: CampaignFolder, generation: int) -> Input:
    """The network without its optimiser: a third of a checkpoint."""
    return Input(folder.checkpoint(generation), (WEIGHTS,))
