"""Corrupt artifacts of a running campaign are rebuilt by its own workers."""

from collections.abc import Callable
from functools import partial
from typing import Any

from chess_snn.campaign.artifacts.artifact import Stored
from chess_snn.campaign.artifacts.table import CHECKPOINT, SHARD
from chess_snn.campaign.integrity.rebuild import Rebuilder, make_here
from chess_snn.campaign.stages.warm_start import is_warm
from chess_snn.campaign.store.folder import CampaignFolder
from tasks import compute, remote
from tasks.cluster.worker_pool import WorkerPool
from tasks.compute import TRAINER, run_on_device
from tasks.progress import ProgressBoard
from tasks.stages import train_first


def rebuilder_of(folder: CampaignFolder, pool: WorkerPool, board: ProgressBoard) -> Rebuilder:
    """The rebuilder of a campaign; what it does is logged on the board, and so by Prefect.

    It tries again as often as the tasks of an iteration are tried.
    """
    directory = str(folder.path)

    def work(stored: Stored) -> Callable[[], Any]:
        match stored.artifact, stored.key:
            case artifact, (iteration, shard) if artifact is SHARD:
                return partial(
                    run_on_device, remote.play_shard, directory, iteration, shard,
                    pool.threads_each,
                )
            case artifact, (int(generation),) if artifact is CHECKPOINT and generation > 0:
                return partial(
                    run_on_device, remote.train_generation, directory, generation - 1,
                    pool.num_cores, device=TRAINER,
                )
            case artifact, _ if artifact is CHECKPOINT and is_warm(folder):
                return partial(train_first, directory, pool.num_cores)
        return partial(make_here, folder, stored)

    def make(_: CampaignFolder, stored: Stored) -> Any:
        return compute.tried_again(work(stored), folder.config.execution.retries, board.message)

    return Rebuilder(folder, board.message, make)
