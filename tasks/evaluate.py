"""The evaluation tasks: a new generation, and the last one at the end of the campaign."""

from collections.abc import Sequence
from pathlib import Path

from prefect import get_run_logger, task

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.store.receipts import EvaluationFacts
from chess_snn.campaign.strength.matches import (
    CLIMB,
    CONVERSION,
    ScheduledMatch,
    converts,
    final_matches,
    finish_match,
    generation_matches,
    unplayed_parts,
)
from chess_snn.types import Json
from tasks import remote
from tasks.cancelling import cancelled_by_stop
from tasks.compute import BACKGROUND, run_all_on_devices
from tasks.failures import Call
from tasks.summary_lines import evaluation_line, matches_line


@task(name="evaluate", task_run_name="evaluate-{generation}")
@cancelled_by_stop
def evaluate(directory: str, generation: int, num_threads: int) -> EvaluationFacts:
    """Play a new generation's matches, its climb and the suite of won positions, side by side.

    Self-play of the next iteration goes first wherever both wait for a device.
    """
    folder = CampaignFolder.open(Path(directory))
    matches = generation_matches(folder, generation)
    # The climb's batches wait for one another: it takes longest and is begun first.
    beside = {
        CLIMB: (remote.play_climb, folder.config.evaluation.climb),
        CONVERSION: (remote.play_conversion, converts(folder)),
    }
    whole: dict[str, Call] = {
        name: (function, directory, generation, num_threads)
        for name, (function, is_wanted) in beside.items() if is_wanted
    }
    parts = _part_calls(directory, generation - 1, matches, num_threads)
    found = dict(zip(
        whole, run_all_on_devices([*whole.values(), *parts], priority=BACKGROUND), strict=False,
    ))
    facts = EvaluationFacts(
        [finish_match(Path(directory), match) for match in matches],
        found.get(CONVERSION), found.get(CLIMB),
    )
    get_run_logger().info("%s", evaluation_line(facts))
    return facts


@task(name="evaluate_final", task_run_name="evaluate_final")
@cancelled_by_stop
def evaluate_final(directory: str, iteration: int, num_threads: int) -> list[Json]:
    """Play the matches at the end of the campaign, whose last one is ``iteration``."""
    matches = final_matches(CampaignFolder.open(Path(directory)))
    run_all_on_devices(_part_calls(directory, iteration, matches, num_threads))
    played = [finish_match(Path(directory), match) for match in matches]
    get_run_logger().info("%s", matches_line(played))
    return played


def _part_calls(
    directory: str, iteration: int, matches: Sequence[ScheduledMatch], num_threads: int
) -> list[Call]:
    folder = CampaignFolder.open(Path(directory))
    return [
        (remote.play_match_part, directory, iteration, match, part, num_threads)
        for match in matches for part in unplayed_parts(folder, match)
    ]
