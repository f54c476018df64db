"""Tags of Prefect runs: a campaign's flow runs have one, its task runs have none."""

from collections.abc import Iterator
from contextlib import contextmanager

from prefect.context import TagsContext


@contextmanager
def untagged_tasks() -> Iterator[None]:
    """Leave tags out of the runs that are submitted in the block.

    For each task run that has one, Prefect asks its server for a place among those of that tag
    before it begins. A task is found by its flow run as well, and on a machine that computes the
    answer took about two seconds, in which a worker waited for its next shard.
    """
    with TagsContext(current_tags=set()):
        yield
