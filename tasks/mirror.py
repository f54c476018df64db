"""The mirroring task: send the object store what it lacks of a campaign."""


from prefect import task
from prefect.cache_policies import NO_CACHE

from chess_snn.campaign.copies.mirror import Mirror, Sent
from chess_snn.types import Progress


@task(name="mirror", task_run_name="mirror-{iteration}", cache_policy=NO_CACHE)
def mirror(
    campaign: Mirror, iteration: int, on_progress: Progress
) -> Sent:
    """Send everything that is committed; ``iteration`` is the last that is finished.

    A store that is away is waited for as long as the settings say. Not tried again by Prefect.
    """
    del iteration  # names the task's run
    return campaign.send_missing(on_progress)
