"""The mirroring task: send the object store what it lacks of a campaign."""

from collections.abc import Callable

from prefect import task
from prefect.cache_policies import NO_CACHE

from chess_snn.campaign.copies.mirror import Sent


@task(name="mirror", task_run_name="mirror-{iteration}", cache_policy=NO_CACHE)
def mirror(send: Callable[[], Sent], iteration: int) -> Sent:
    """Have ``send`` send everything that is committed; ``iteration`` is the last that is finished.

    A store that is away is waited for as long as the settings say. Not tried again by Prefect.
    """
    del iteration  # names the task's run
    return send()
