"""What is damaged in a campaign is set aside, so that the rest can be gone on with."""

from dataclasses import dataclass
from pathlib import Path

from chess_snn.campaign.keeping.findings import Finding, Findings
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.plans import write_plan
from chess_snn.campaign.store.quarantine import set_aside, write_note
from chess_snn.campaign.store.receipts import read_receipt
from chess_snn.campaign.store.removals import is_removed
from chess_snn.errors import CorruptDataError


@dataclass(frozen=True, slots=True)
class Repair:
    """What became of one damaged thing."""

    path: str
    """In the campaign, with ``/`` between parts."""
    is_repaired: bool
    """Whether the campaign can be gone on with as far as this goes."""
    text: str
    """What was done, and what follows; or what somebody has to do."""


def repair_campaign(folder: CampaignFolder, findings: Findings) -> list[Repair]:
    """Set aside what ``findings`` call damaged; the caller holds the campaign's lock.

    Raises:
        UsageError: the folder cannot be written.
    """
    damage = findings.damage
    # Why a thing is not there may stand in a note that cannot be read.
    are_notes_whole = all(finding.kind != "note" for finding in damage)
    return [_repair(folder, finding, are_notes_whole) for finding in damage]


def _repair(folder: CampaignFolder, finding: Finding, are_notes_whole: bool) -> Repair:
    path = folder.path / finding.path
    if finding.kind == "plan" and finding.state in {"lost", "damaged", "differs"}:
        return _repair_plan(folder, path, finding)
    is_receipt = finding.kind == "receipt" and finding.state in {"lost", "damaged"}
    if not are_notes_whole and (is_receipt or finding.state == "lost"):
        return Repair(
            finding.path, False,
            "left as it is: a note that may account for it cannot be read; restore that one from a "
            "copy, and repair again",
        )
    if is_receipt and not _can_be_finished_again(folder, path):
        return Repair(
            finding.path, False,
            "left as it is: what it was made from was removed by `chess-snn gc`; restore it from a "
            "copy",
        )
    if finding.state == "lost":
        write_note(folder, path, "set aside", finding.text)  # so that it is accounted for
        return Repair(finding.path, True, _what_follows(finding))
    is_decision = finding.kind in {"promotion", "extension", "note"}
    if is_decision or finding.state in {"differs", "unknown version"}:
        return Repair(
            finding.path, False, f"left as it is ({finding.text}); restore it from a copy"
        )
    target = set_aside(folder, path, finding.text)
    return Repair(finding.path, True, f"set aside in {target}; {_what_follows(finding)}")


def _what_follows(finding: Finding) -> str:
    match finding.kind:
        case "checkpoint" if finding.path.startswith("supervised/"):
            return "training goes on from the one before, or from the beginning"
        case "shard":
            return "played again when a window needs it, or dropped where that is not possible"
        case "checkpoint":
            return "trained again from the generation before when it is needed"
        case "receipt":
            return "resume finishes the iteration again"
        case "match":
            return "played again where a campaign under way needs it; ratings go without it"
        case _:
            return "made again by resume"


def _can_be_finished_again(folder: CampaignFolder, receipt: Path) -> bool:
    iteration = _number(receipt)
    return not (
        is_removed(folder, folder.shard(iteration, 0))
        or is_removed(folder, folder.checkpoint(iteration + 1))
    )


def _repair_plan(folder: CampaignFolder, path: Path, finding: Finding) -> Repair:
    """A plan stands in the receipt of its iteration too, once that is finished."""
    set_aside(folder, path, finding.text)
    try:
        plan = read_receipt(folder, _number(path)).plan
    except CorruptDataError:
        return Repair(finding.path, True, "set aside; resume makes another one")
    write_plan(folder, plan)
    write_note(folder, path, "made again", "from the receipt of its iteration")
    return Repair(finding.path, True, "set aside, and restored from its receipt")


def _number(path: Path) -> int:
    """Of ``iter-000012.json``."""
    return int(path.stem.removeprefix("iter-"))
