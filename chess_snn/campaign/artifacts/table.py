"""All artifacts of a campaign, one row each.

After a change, write the table into the documentation: ``python tests/written_docs.py``.
"""

from pathlib import Path
from typing import Any, Final

from chess_snn.campaign.artifacts import checks, retention
from chess_snn.campaign.artifacts.artifact import Artifact, Stored
from chess_snn.campaign.stages import (
    play_shard,
    prepare_first_generation,
    train_generation,
)
from chess_snn.campaign.stages.first_generation import is_warm, train_first_generation
from chess_snn.campaign.store import folder as paths
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.notes import NOTES, REMOVALS, is_removed
from chess_snn.campaign.store.plans import EXTENSIONS, read_plan
from chess_snn.campaign.store.receipts import read_receipt
from chess_snn.campaign.strength.champions import HAND_PROMOTIONS
from chess_snn.campaign.strength.match_schedule import CONVERSION, LADDER_TEST
from chess_snn.campaign.strength.reports import CONVERSION_REPORTS, LADDER_TEST_REPORTS
from chess_snn.errors import BeyondRepairError, RemovedError
from chess_snn.evaluation.match_files import read_match_body


def _check_games(folder: CampaignFolder, generation: int) -> None:
    """Raise a RemovedError if the games that ``generation`` was trained on were removed."""
    if generation > 0 and is_removed(folder, folder.shard(generation - 1, 0)):
        raise RemovedError(
            f"generation {generation} cannot be trained again: its games were removed by "
            "`chess-snn gc`"
        )


def _make_checkpoint(directory: Path, generation: int) -> Any:
    """Train or prepare ``generation``."""
    if generation > 0:
        return train_generation(directory, generation - 1)
    folder = CampaignFolder.open(directory)
    if is_warm(folder):
        return train_first_generation(directory)
    return prepare_first_generation(folder)


def _refuse_inherited_shard(directory: Path, origin: str, shard: int) -> None:
    """Raise a BeyondRepairError: another campaign played this shard."""
    raise BeyondRepairError(
        f"shard {shard} of {origin} was played by another campaign than {directory}"
    )


_REPLAYED: Final = "played again where a campaign under way needs it; ratings go without it"
_GENERATION_EVENT: Final = "matches/gen-{generation:06d}"

RECEIPT: Final = Artifact(
    "receipt", paths.RECEIPT, checks.check_of_iteration(read_receipt),
    expected=checks.expected_receipts, after_repair="resume finishes the iteration again",
    resume_inputs=checks.needed_to_finish, is_forked=True,
)
PLAN: Final = Artifact(
    "plan", paths.PLAN, checks.check_of_iteration(read_plan), expected=checks.expected_plans,
    differences=checks.plan_differences, after_repair="resume makes another one",
    restore=checks.restore_plan, is_forked=True,
)
SHARD: Final = Artifact(
    "shard", paths.SHARD, checks.check_shard, "shard {shard} of iteration {iteration}",
    is_folder=True, audit=checks.audit_shards, expected=checks.expected_shards,
    differences=checks.shard_differences, make=play_shard, is_optional=True,
    after_repair="played again when a window needs it, or dropped where that is not possible",
    sort="games", disposable=retention.disposable_shards,
    kept="future windows of training, the newest window, the two newest iterations",
    is_forked=True,
)
INHERITED_SHARD: Final = Artifact(
    "inherited shard", paths.INHERITED_SHARD, checks.check_shard,
    "shard {shard} of {origin}, played by another campaign", "shard", is_folder=True,
    audit=checks.audit_shards, expected=checks.expected_inherited_shards,
    make=_refuse_inherited_shard, is_optional=True,
    after_repair="copied again from the campaign that played it, or dropped",
    sort="games", disposable=retention.disposable_inherited_shards,
    kept="future windows of training, the newest window", is_forked=True,
)
CHECKPOINT: Final = Artifact(
    "checkpoint", paths.CHECKPOINT, checks.check_generation, "generation {generation}",
    is_folder=True, expected=checks.expected_checkpoints, differences=checks.checkpoint_differences,
    check_inputs=_check_games, make=_make_checkpoint,
    after_repair="trained again from the generation before when it is needed",
    sort="checkpoints", disposable=retention.disposable_checkpoints,
    kept="generation 0, the newest, every champion, those of the last matches, and those that "
    "still have matches to play",
    is_forked=True,
)
STEP_CHECKPOINT: Final = Artifact(
    "pretraining checkpoint", paths.STEP_CHECKPOINT, checks.check_step,
    "the pretraining checkpoint at step {step:,}", "checkpoint", is_folder=True,
    is_used=retention.is_pretraining,
    after_repair="training continues from the one before, or from the beginning",
    sort="leftovers", disposable=retention.disposable_steps, kept="until generation 0 is there",
)
CONVERSION_REPORT: Final = Artifact(
    "conversion report", f"{_GENERATION_EVENT}/{CONVERSION}.json",
    checks.check_record(CONVERSION_REPORTS.read),
    kind="match", expected=checks.expected_reports(CONVERSION, lambda receipt: receipt.conversion),
    differences=checks.match_differences, after_repair=_REPLAYED, is_forked=True,
)
LADDER_TEST_REPORT: Final = Artifact(
    "ladder test report", f"{_GENERATION_EVENT}/{LADDER_TEST}.json",
    checks.check_record(LADDER_TEST_REPORTS.read), kind="match",
    expected=checks.expected_reports(LADDER_TEST, lambda receipt: receipt.ladder_test),
    differences=checks.match_differences, after_repair=_REPLAYED, is_forked=True,
)
MATCH_PART: Final = Artifact(
    "match part", paths.MATCH_PART, checks.check_record(read_match_body), kind="match",
    after_repair=_REPLAYED, sort="leftovers", disposable=retention.disposable_match_parts,
    kept="until the match is complete",
)
MATCH: Final = Artifact(
    "match", paths.MATCH, checks.check_match, expected=checks.expected_matches,
    differences=checks.match_differences, after_repair=_REPLAYED, is_forked=True,
)
HAND_PROMOTION: Final = Artifact(
    "hand promotion", paths.HAND_PROMOTION, checks.check_record(HAND_PROMOTIONS.read),
    kind="promotion", expected=checks.without_gaps("hand promotion", paths.HAND_PROMOTION),
)
EXTENSION: Final = Artifact(
    "extension", paths.EXTENSION, checks.check_record(EXTENSIONS.read),
    expected=checks.without_gaps("extension", paths.EXTENSION),
)
COMPARISON: Final = Artifact("comparison", paths.COMPARISON, None)
"""Only campaigns of earlier versions have it."""
NOTE: Final = Artifact("quarantine note", paths.NOTE, checks.check_record(NOTES.read), kind="note")
REMOVAL: Final = Artifact("removal", paths.REMOVAL, checks.check_record(REMOVALS.read), kind="note")
QUARANTINED: Final = Artifact(
    "quarantined", paths.QUARANTINED, None, sort="quarantine",
    disposable=retention.disposable_quarantined, kept="nothing",
)

ARTIFACTS: tuple[Artifact, ...] = (
    RECEIPT, PLAN, SHARD, INHERITED_SHARD, CHECKPOINT, STEP_CHECKPOINT, CONVERSION_REPORT,
    LADDER_TEST_REPORT, MATCH_PART, MATCH, HAND_PROMOTION, EXTENSION, COMPARISON, NOTE, REMOVAL,
    QUARANTINED,
)
"""Receipts are first, so that everything they name exists when it is looked for."""


def stored_at(folder: CampaignFolder, path: Path) -> Stored | None:
    """The artifact that ``path`` is by its name; None of anything else, or outside the campaign."""
    return named(folder.name_of(path)) if path.is_relative_to(folder.path) else None


def named(name: str) -> Stored | None:
    """The artifact at ``name`` in a campaign; None of anything else."""
    for artifact in ARTIFACTS:
        if (key := artifact.parse(name)) is not None:
            return Stored(artifact, key)
    return None


def all_stored(folder: CampaignFolder, artifact: Artifact) -> list[Stored]:
    """All of one kind that are there, corrupt or not, by their keys."""
    found = (stored_at(folder, path) for path in folder.path.glob(artifact.glob))
    return sorted(
        (stored for stored in found if stored is not None and stored.artifact is artifact),
        key=lambda stored: stored.key,
    )


def top_folders() -> tuple[str, ...]:
    """Folders of a campaign that artifacts are in."""
    return tuple(dict.fromkeys(artifact.top for artifact in ARTIFACTS))


def kinds() -> tuple[str, ...]:
    """Names of the artifacts that verify counts."""
    checked = (artifact for artifact in ARTIFACTS if artifact.check is not None)
    return tuple(dict.fromkeys(artifact.counted_as for artifact in checked))
