"""The match task of a tournament."""

from pathlib import Path

from prefect import task

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.strength.matches import ScheduledMatch, finish_match, unplayed_parts
from chess_snn.types import Json
from tasks import remote
from tasks.compute import run_all_on_devices


@task(name="match", task_run_name="{match.name}")
def play(directory: str, match: ScheduledMatch, iteration: int, num_threads: int) -> Json:
    """Play one match, part by part on all devices; one that was played is read.

    Args:
        directory: the campaign folder.
        match: of its generations.
        iteration: that progress is told of.
        num_threads: of each worker.

    Returns:
        The match's summary.
    """
    folder = CampaignFolder.open(Path(directory))
    run_all_on_devices([
        (remote.play_match_part, directory, iteration, match, part, num_threads)
        for part in unplayed_parts(folder, match)
    ])
    return finish_match(Path(directory), match)
