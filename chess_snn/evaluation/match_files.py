"""Matches as files: one JSON object each, with a digest of itself."""

from pathlib import Path
from typing import Final

from chess_snn.data import StoredFormat, read_json, write_json
from chess_snn.evaluation.match_result import OLDEST_SCHEMA, SCHEMA, MatchResult
from chess_snn.types import Json

_FORMAT: Final = StoredFormat(
    "match", version=SCHEMA, upgrades={OLDEST_SCHEMA: dict}, first_with_digest=3
)


def write_match(path: Path, result: MatchResult, more: Json | None = None) -> None:
    """Put ``result`` at ``path``, and beside it what ``more`` says of it.

    Raises:
        UsageError: the place cannot be written.
    """
    write_json(path, _FORMAT.sealed((more or {}) | result.to_json()))


def read_match_body(path: Path) -> Json:
    """What :func:`write_match` put at ``path``, for :meth:`MatchResult.from_json`.

    Raises:
        CorruptDataError: it is missing, or is not what was written.
    """
    body = read_json(path)
    _FORMAT.check_digest(body, path, "restore it from a copy, or delete it and play it again")
    return body
