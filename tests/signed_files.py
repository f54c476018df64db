"""Edits of stored JSON files that carry a digest of themselves."""

import json
from pathlib import Path

from chess_snn.data import is_own_digest, with_digest


def edit(path: Path, **changes: object) -> None:
    """As its writer would have written it: with the right digest, where it has one."""
    body = json.loads(path.read_text())
    had_digest = is_own_digest(body)
    body.pop("digest", None)
    body |= changes
    path.write_text(json.dumps(with_digest(body) if had_digest else body))
