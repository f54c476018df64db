"""The evaluation tasks: a new generation, and the last one at the end of the campaign."""

from collections.abc import Sequence
from pathlib import Path

from prefect import task

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.matches import (
    ScheduledMatch,
    final_matches,
    finish_match,
    generation_matches,
    unplayed_parts,
)
from chess_snn.campaign.receipts import EvaluationFacts
from chess_snn.types import Json
from tasks import remote
from tasks.compute import BACKGROUND, run_all_on_devices


@task(name="evaluate", task_run_name="evaluate-{generation}")
def evaluate(directory: str, generation: int, num_threads: int) -> EvaluationFacts:
    """Play the matches of a new generation and the suite of won positions, side by side.

    Self-play of the next iteration goes first wherever both wait for a device.
    """
    matches = generation_matches(CampaignFolder.open(Path(directory)), generation)
    conversion, *_ = run_all_on_devices(
        [
            (remote.play_conversion, directory, generation, num_threads),
            *_part_calls(directory, generation - 1, matches, num_threads),
        ],
        priority=BACKGROUND,
    )
    return EvaluationFacts([finish_match(Path(directory), match) for match in matches], conversion)


@task(name="evaluate_final", task_run_name="evaluate_final")
def evaluate_final(directory: str, iteration: int, num_threads: int) -> list[Json]:
    """Play the matches at the end of the campaign, whose last one is ``iteration``."""
    matches = final_matches(CampaignFolder.open(Path(directory)))
    run_all_on_devices(_part_calls(directory, iteration, matches, num_threads))
    return [finish_match(Path(directory), match) for match in matches]


def _part_calls(
    directory: str, iteration: int, matches: Sequence[ScheduledMatch], num_threads: int
) -> list[tuple[object, ...]]:
    folder = CampaignFolder.open(Path(directory))
    return [
        (remote.play_match_part, directory, iteration, match, part, num_threads)
        for match in matches for part in unplayed_parts(folder, match)
    ]
