"""Quarantine what is corrupt in a campaign, so that the rest can be continued."""

from dataclasses import dataclass

from chess_snn.campaign.artifacts.artifact import Stored
from chess_snn.campaign.artifacts.table import named
from chess_snn.campaign.integrity.verify import NOTE, Finding, Findings
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.notes import is_removed, quarantine, write_note


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done about one corrupt artifact."""

    path: str
    """In the campaign, with ``/`` between parts."""
    is_repaired: bool
    """Whether this no longer keeps the campaign from being continued."""
    text: str
    """What was done and what follows; or what the user must do."""


def repair_campaign(folder: CampaignFolder, findings: Findings) -> list[Repair]:
    """Quarantine what ``findings`` call damaged; the caller holds the campaign's lock.

    Raises:
        UsageError: the folder cannot be written.
    """
    damage = findings.damage
    # A note that cannot be read may say why an artifact is not there.
    are_notes_whole = all(finding.kind != NOTE for finding in damage)
    return [
        Repair(finding.path, *_repair(folder, finding, named(finding.path), are_notes_whole))
        for finding in damage
    ]


def _repair(
    folder: CampaignFolder, finding: Finding, stored: Stored | None, are_notes_whole: bool
) -> tuple[bool, str]:
    """Whether the artifact of ``finding`` is repaired, and how."""
    if stored is None or not stored.artifact.after_repair:
        return False, f"left as it is ({finding.text}); restore it from a copy"
    artifact, path = stored.artifact, folder.path / finding.path
    if artifact.restore is not None and finding.state != "unknown version":
        quarantine(folder, path, finding.text)
        if not artifact.restore(folder, stored.key):
            return True, f"quarantined; {artifact.after_repair}"
        write_note(folder, path, "rebuilt", "from the receipt of its iteration")
        return True, "quarantined, and restored from its receipt"
    if refusal := _refusal(folder, finding, stored, are_notes_whole):
        return False, f"left as it is: {refusal}"
    if finding.state == "lost":
        write_note(folder, path, "quarantined", finding.text)  # which accounts for it
        return True, artifact.after_repair
    target = quarantine(folder, path, finding.text)
    return True, f"quarantined in {target}; {artifact.after_repair}"


def _refusal(
    folder: CampaignFolder, finding: Finding, stored: Stored, are_notes_whole: bool
) -> str | None:
    """Why an artifact is not quarantined; None if it can be."""
    if finding.state in {"differs", "unknown version"}:
        return f"{finding.text}; restore it from a copy"
    needed = tuple(stored.artifact.resume_inputs(folder, stored.key))
    if not are_notes_whole and (needed or finding.state == "lost"):
        return (
            "a note that may account for it cannot be read; restore that one from a copy, and "
            "repair again"
        )
    if any(is_removed(folder, place) for place in needed):
        return "what it was made from was removed by `chess-snn gc`; restore it from a copy"
    return None
