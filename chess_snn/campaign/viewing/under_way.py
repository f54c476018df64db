"""Which stages of a campaign are under way, and how far they are, read from its folder."""

from collections.abc import Sequence
from pathlib import Path

from chess_snn.campaign.stages.warm_start import is_warm
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.store.plans import shard_paths
from chess_snn.campaign.strength.climbing import num_climb_games
from chess_snn.campaign.strength.gate import gate_match
from chess_snn.campaign.strength.matches import (
    CONVERSION,
    ScheduledMatch,
    event_of,
    generation_matches,
    is_evaluated,
)
from chess_snn.campaign.viewing.events import (
    EVALUATION,
    GATING_MATCH,
    PREPARATION,
    RECEIPT,
    SELF_PLAY,
    SUPERVISED_TRAINING,
    TRAINING,
    StageProgress,
)
from chess_snn.data import is_committed
from chess_snn.training import supervised_progress


class StageFinder:
    """Finds the stages of one campaign again and again."""

    def __init__(self, folder: CampaignFolder) -> None:
        self._folder = folder
        self._matches: dict[int, list[ScheduledMatch]] = {}

    def before_iterations(self) -> StageProgress:
        """The stage of a campaign in which no iteration has begun."""
        folder = self._folder
        begun_s = changed_s(folder.path / CONFIG_FILE)
        if is_warm(folder) and not is_committed(folder.checkpoint(0)):
            progress = supervised_progress(folder.supervised)
            unit = "" if progress is None else "steps"
            done, total = progress or (0, 0)
            return StageProgress(0, SUPERVISED_TRAINING, unit, done, total, begun_s=begun_s)
        return StageProgress(0, PREPARATION, "", 0, 0, begun_s=begun_s)

    def of_iteration(self, iteration: int) -> StageProgress:
        """The stage of an iteration that has its plan and no receipt."""
        folder = self._folder
        shards = shard_paths(folder, iteration)
        num_committed = sum(map(is_committed, shards))
        if num_committed < len(shards):
            begun_s = changed_s(folder.plan(iteration))
            return StageProgress(
                iteration, SELF_PLAY, "shards", num_committed, len(shards), begun_s=begun_s
            )
        generation = iteration + 1
        if not is_committed(folder.checkpoint(generation)):
            return StageProgress(iteration, TRAINING, "", 0, 0, begun_s=changed_s(shards[0].parent))
        trained_s = changed_s(folder.checkpoint(generation))
        if is_evaluated(folder, generation):
            matches = self._matches_of(generation)
            positions = folder.config.evaluation.won_positions
            has_converted = folder.match(event_of(generation), CONVERSION).exists()
            done = num_games_played(folder, matches) + (positions if has_converted else 0)
            total = sum(match.num_games for match in matches) + positions
            if folder.config.evaluation.climb:
                done += num_climb_games(folder, generation)
                total += folder.config.evaluation.climb_games
            if done < total:
                return StageProgress(iteration, EVALUATION, "games", done, total, begun_s=trained_s)
        return self._gate(iteration, trained_s) or StageProgress(
            iteration, RECEIPT, "", 0, 0, begun_s=trained_s
        )

    def _gate(self, iteration: int, trained_s: float) -> StageProgress | None:
        """The gating match, from when its champion is known until its result is written."""
        folder = self._folder
        if iteration > 0 and not folder.receipt(iteration - 1).exists():
            return None
        match = gate_match(folder, iteration + 1)
        if match is None or folder.match(match.event, match.name).exists():
            return None
        done = num_games_played(folder, [match])
        return StageProgress(
            iteration, GATING_MATCH, "games at most", done, match.num_games, begun_s=trained_s
        )

    def _matches_of(self, generation: int) -> list[ScheduledMatch]:
        """Cached: they are fixed once the generation exists, and finding them reads all plans."""
        if generation not in self._matches:
            self._matches[generation] = generation_matches(self._folder, generation)
        return self._matches[generation]


def num_games_played(folder: CampaignFolder, matches: Sequence[ScheduledMatch]) -> int:
    """Games of ``matches`` that are on the disk, with those of finished parts."""
    return sum(_num_played(folder, match) for match in matches)


def _num_played(folder: CampaignFolder, match: ScheduledMatch) -> int:
    if folder.match(match.event, match.name).exists():
        return match.num_games
    return sum(
        2 * len(openings) for part, openings in enumerate(match.parts)
        if folder.match_part(match.event, match.name, part).exists()
    )


def changed_s(path: Path) -> float:
    """When ``path`` was last written, in seconds since 1970; 0 if it is missing."""
    try:
        return path.stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return 0.0
