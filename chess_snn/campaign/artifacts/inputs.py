"""What is read to make each artifact: see :class:`chess_snn.campaign.artifacts.artifact.Input`.

A worker that sees the campaign folder needs none of this. For one that does not, exactly this is
fetched (:mod:`chess_snn.campaign.worker_cache`).
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from chess_snn.campaign.artifacts.artifact import Input, Key
from chess_snn.campaign.stages import (
    prepare_first_generation,
    shards_played_before,
    train_generation,
    window_shards,
)
from chess_snn.campaign.stages.warm_start import is_warm, train_first_generation
from chess_snn.campaign.stages.window import window_iterations
from chess_snn.campaign.store.folder import CampaignFolder, file_name
from chess_snn.campaign.store.notes import is_removed
from chess_snn.campaign.strength.climbing import earlier_climb
from chess_snn.campaign.strength.matches import NetworkPlayer, ScheduledMatch
from chess_snn.errors import BeyondRepairError, RemovedError
from chess_snn.training import WEIGHTS


def shard_inputs(folder: CampaignFolder, iteration: int, shard: int) -> Iterator[Input]:
    """A network's weights, and earlier games to restart from."""
    del shard
    yield _weights(folder, iteration)
    yield from map(Input, shards_played_before(folder, iteration))
    yield from _plans(folder, range(max(0, iteration - 1), iteration + 1))


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
    yield from _plans(folder, window_iterations(folder, iteration))


def match_part_inputs(folder: CampaignFolder, match: ScheduledMatch, part: int) -> Iterator[Input]:
    """The weights of the networks that play."""
    del part
    players = (match.player, match.opponent)
    networks = {player.generation for player in players if isinstance(player, NetworkPlayer)}
    return (_weights(folder, generation) for generation in sorted(networks))


def match_part_key(match: ScheduledMatch, part: int) -> Key:
    """Of the part's path."""
    return match.event, file_name(match.name), part


def conversion_inputs(folder: CampaignFolder, generation: int) -> Iterator[Input]:
    """Weights, and the plan, which has the simulations."""
    yield _weights(folder, generation)
    yield Input(folder.plan(generation - 1))


def climb_inputs(folder: CampaignFolder, generation: int) -> Iterator[Input]:
    """Weights, and the report of an earlier ladder test, where this one begins."""
    yield _weights(folder, generation)
    if (earlier := earlier_climb(folder, generation)) is not None:
        yield Input(earlier)


def make_checkpoint(directory: Path, generation: int) -> Any:
    """Train or prepare ``generation``."""
    if generation > 0:
        return train_generation(directory, generation - 1)
    folder = CampaignFolder.open(directory)
    if is_warm(folder):
        return train_first_generation(directory)
    return prepare_first_generation(folder)


def refuse_inherited_shard(directory: Path, origin: str, shard: int) -> None:
    """Raise: another campaign played this shard.

    Raises:
        BeyondRepairError: always.
    """
    raise BeyondRepairError(
        f"shard {shard} of {origin} was played by another campaign than {directory}"
    )


def _weights(folder: CampaignFolder, generation: int) -> Input:
    """The network without its optimiser: a third of a checkpoint."""
    return Input(folder.checkpoint(generation), (WEIGHTS,))


def _plans(folder: CampaignFolder, iterations: Iterable[int]) -> Iterator[Input]:
    return (Input(folder.plan(iteration)) for iteration in iterations)
