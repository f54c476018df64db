"""Edits of stored files: JSON that carries a digest of itself, and campaign.toml."""

import json
from collections.abc import Callable
from pathlib import Path

from chess_snn.campaign import CampaignFolder
from chess_snn.data import is_own_digest, with_digest, write_json

MATCH, REPORT = 4, 3
"""Versions."""


def write_signed(path: Path, version: int, body: dict) -> None:
    """Write ``body`` with a version and a digest."""
    write_json(path, with_digest({"schema": version} | body))


def resign(path: Path, change: Callable[[dict], None]) -> None:
    """Edit a JSON file as its writer would have: with a digest of its own, where it has one."""
    body = json.loads(path.read_text())
    had_digest = is_own_digest(body)
    body.pop("digest", None)
    change(body)
    path.write_text(json.dumps(with_digest(body) if had_digest else body))


def edit(path: Path, **changes: object) -> None:
    """:func:`resign` with other values at the top."""
    resign(path, lambda body: body.update(changes))


def edit_config(folder: CampaignFolder, old: str, new: str) -> CampaignFolder:
    """The campaign after a line of its configuration was edited."""
    file = folder.path / "campaign.toml"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    return CampaignFolder.open(folder.path)
