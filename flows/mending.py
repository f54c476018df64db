"""Who makes damaged things of a running campaign again: its own workers."""

from functools import partial

from chess_snn.campaign.keeping.mending import Makers, Mender
from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.campaign.stages.warm_start import is_warm
from flows.context import CampaignRun
from tasks import remote
from tasks.compute import TRAINER, run_on_device
from tasks.train import train_supervised


def mender_of(run: CampaignRun) -> Mender:
    """The mender of a campaign; what it does is told on the board, and so in Prefect's log."""
    folder, directory = run.folder, str(run.folder.path)

    def play_shard(iteration: int, shard: int) -> object:
        return run_on_device(
            remote.play_shard, directory, iteration, shard, run.crew.threads_each
        )

    def train(iteration: int) -> object:
        return run_on_device(
            remote.train_generation, directory, iteration, run.crew.num_cores, device=TRAINER
        )

    def train_first() -> object:
        return train_supervised.fn(directory, run.crew.num_cores)

    make_first = train_first if is_warm(folder) else partial(prepare_first_generation, folder)
    return Mender(folder, Makers(play_shard, train, make_first), run.board.message)
