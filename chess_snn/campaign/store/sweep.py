"""Remove what killed processes left half-written; nothing committed is ever touched."""

from typing import Final

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.data import sweep_temporaries

KINDS: Final = (
    "plans", "games", "supervised", "checkpoints", "matches", "receipts", "promotions",
    "extensions", "comparisons",
    "quarantine", "removals",
)
"""Folders of a campaign that hold what is committed."""


def sweep_leftovers(folder: CampaignFolder) -> int:
    """Delete temporaries of dead processes in the whole campaign; how many there were."""
    num_removed = 0
    for kind in KINDS:
        root = folder.path / kind
        parents = [root, *(entry for entry in root.glob("*") if entry.is_dir())]
        num_removed += sum(len(sweep_temporaries(parent)) for parent in parents if parent.is_dir())
    return num_removed
