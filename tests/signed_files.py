"""Edits of stored JSON files that carry a digest of themselves."""

import json
from collections.abc import Callable
from pathlib import Path

from chess_snn.data import is_own_digest, with_digest


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
