"""The self-play task: one shard of games."""

from prefect import task

from chess_snn.campaign.store.receipts import ShardFacts
from tasks import remote
from tasks.compute import run_on_device


@task(name="self_play", task_run_name="self_play-{iteration}-{shard}")
def self_play(directory: str, iteration: int, shard: int, num_threads: int) -> ShardFacts:
    """Play shard ``shard`` of ``iteration`` on a worker and commit it."""
    return run_on_device(remote.play_shard, directory, iteration, shard, num_threads)
