"""The self-play task: one shard of games."""

from prefect import get_run_logger, task

from chess_snn.campaign.store.receipts import ShardFacts
from tasks import remote
from tasks.cancelling import cancelled_by_stop
from tasks.cluster.attempts import Done
from tasks.compute import done_on_device
from tasks.summary_lines import shard_line


@task(name="self_play", task_run_name="self_play-{iteration}-{shard}")
@cancelled_by_stop
def self_play(directory: str, iteration: int, shard: int, num_threads: int) -> Done[ShardFacts]:
    """Play shard ``shard`` of ``iteration`` on a worker and commit it."""
    done = done_on_device(remote.play_shard, directory, iteration, shard, num_threads)
    get_run_logger().info("%s", shard_line(done))
    return done
