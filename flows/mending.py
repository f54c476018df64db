"""Who makes damaged things of a running campaign again: its own workers."""

from collections.abc import Callable
from functools import partial

from chess_snn.campaign.keeping.mending import Makers, Mender
from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.campaign.stages.warm_start import is_warm
from chess_snn.campaign.store.folder import CampaignFolder
from flows.cluster import Crew
from tasks import compute, remote
from tasks.compute import TRAINER, run_on_device
from tasks.progress import ProgressBoard
from tasks.stages import train_first


def mender_of(folder: CampaignFolder, crew: Crew, board: ProgressBoard) -> Mender:
    """The mender of a campaign; what it does is told on the board, and so in Prefect's log.

    It tries again as often as the tasks of an iteration are tried.
    """
    directory = str(folder.path)

    def persistently(make: Callable[[], object]) -> object:
        return compute.tried_again(make, folder.config.execution.retries, board.message)

    def play_shard(iteration: int, shard: int) -> object:
        return persistently(partial(
            run_on_device, remote.play_shard, directory, iteration, shard, crew.threads_each
        ))

    def train(iteration: int) -> object:
        return persistently(partial(
            run_on_device, remote.train_generation, directory, iteration, crew.num_cores,
            device=TRAINER,
        ))

    def learn_first() -> object:
        return persistently(partial(train_first, directory, crew.num_cores))

    make_first = learn_first if is_warm(folder) else partial(prepare_first_generation, folder)
    return Mender(folder, Makers(play_shard, train, make_first), board.message)
