"""Which stages of a campaign are under way, and how far, as its folder tells."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.campaign.stages.warm_start import is_warm
from chess_snn.campaign.store.dealing import shard_paths
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.strength.climbing import num_climb_games
from chess_snn.campaign.strength.gate import gate_match
from chess_snn.campaign.strength.matches import (
    CONVERSION,
    ScheduledMatch,
    event_of,
    generation_matches,
    is_evaluated,
)
from chess_snn.data import is_committed
from chess_snn.training import supervised_progress

PREPARATION: Final = "preparation"
SUPERVISED_TRAINING: Final = "supervised training"
SELF_PLAY: Final = "self-play"
TRAINING: Final = "training"
EVALUATION: Final = "evaluation"
GATE: Final = "gate"
RECEIPT: Final = "receipt"
FINAL_MATCHES: Final = "final matches"


@dataclass(frozen=True, slots=True)
class StageUnderWay:
    """A stage whose outcome is not committed, while everything before it is."""

    iteration: int
    name: str
    unit: str
    """What is counted; empty where the folder does not tell how far the stage is."""
    done: int
    total: int
    since_s: float
    """When it could begin: seconds since 1970, by the clock of the disk."""

    def __str__(self) -> str:
        """``iteration 3 self-play: 2 of 4 shards``."""
        count = f": {self.done:,} of {self.total:,} {self.unit}" if self.unit else ""
        return f"iteration {self.iteration} {self.name}{count}"


class StageFinder:
    """Looks at one campaign again and again."""

    def __init__(self, folder: CampaignFolder) -> None:
        self._folder = folder
        self._matches: dict[int, list[ScheduledMatch]] = {}

    def before_iterations(self) -> StageUnderWay:
        """The stage of a campaign in which no iteration has begun."""
        folder = self._folder
        begun_s = changed_s(folder.path / CONFIG_FILE)
        if is_warm(folder) and not is_committed(folder.checkpoint(0)):
            progress = supervised_progress(folder.supervised)
            unit = "" if progress is None else "steps"
            return StageUnderWay(0, SUPERVISED_TRAINING, unit, *(progress or (0, 0)), begun_s)
        return StageUnderWay(0, PREPARATION, "", 0, 0, begun_s)

    def of_iteration(self, iteration: int) -> StageUnderWay:
        """The stage of an iteration that has its plan and no receipt."""
        folder = self._folder
        shards = shard_paths(folder, iteration)
        num_committed = sum(map(is_committed, shards))
        if num_committed < len(shards):
            begun_s = changed_s(folder.plan(iteration))
            return StageUnderWay(
                iteration, SELF_PLAY, "shards", num_committed, len(shards), begun_s
            )
        generation = iteration + 1
        if not is_committed(folder.checkpoint(generation)):
            return StageUnderWay(iteration, TRAINING, "", 0, 0, changed_s(shards[0].parent))
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
                return StageUnderWay(iteration, EVALUATION, "games", done, total, trained_s)
        return self._gate(iteration, trained_s) or StageUnderWay(
            iteration, RECEIPT, "", 0, 0, trained_s
        )

    def _gate(self, iteration: int, trained_s: float) -> StageUnderWay | None:
        """Games against the champion, once that is known and until they are put together."""
        folder = self._folder
        if iteration > 0 and not folder.receipt(iteration - 1).exists():
            return None
        match = gate_match(folder, iteration + 1)
        if match is None or folder.match(match.event, match.name).exists():
            return None
        done = num_games_played(folder, [match])
        return StageUnderWay(
            iteration, GATE, "games at most", done, match.num_games, trained_s
        )

    def _matches_of(self, generation: int) -> list[ScheduledMatch]:
        """Which they are is settled once the generation is there; asking reads all plans."""
        if generation not in self._matches:
            self._matches[generation] = generation_matches(self._folder, generation)
        return self._matches[generation]


def num_games_played(folder: CampaignFolder, matches: Sequence[ScheduledMatch]) -> int:
    """Games of ``matches`` that are on the disk, those of single parts too."""
    return sum(_num_played(folder, match) for match in matches)


def _num_played(folder: CampaignFolder, match: ScheduledMatch) -> int:
    if folder.match(match.event, match.name).exists():
        return match.num_games
    return sum(
        2 * len(openings) for part, openings in enumerate(match.parts)
        if folder.match_part(match.event, match.name, part).exists()
    )


def changed_s(path: Path) -> float:
    """When ``path`` was written last, seconds since 1970; 0 where it is missing."""
    try:
        return path.stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return 0.0
