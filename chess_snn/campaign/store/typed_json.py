"""Dataclasses as JSON: typed as declared, and nothing more; and small files of one record each."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import to_json

from chess_snn.data import StoredFormat, read_json
from chess_snn.errors import ConfigError, CorruptDataError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Stored = TypeVar("Stored", bound="DataclassInstance")

RESTORE = "restore it from a copy"
"""Advice about a corrupt file that nothing else can replace."""


@dataclass(frozen=True, slots=True)
class RecordFormat(Generic[Stored]):
    """Format of the records of one kind: a JSON file each, which names its version."""

    kind: type[Stored]
    format: StoredFormat

    def text(self, record: Stored) -> str:
        """``record`` as it stands in its file."""
        body = self.format.sealed(asdict(record))
        return json.dumps(body, indent=2, allow_nan=False) + "\n"

    def read(self, path: Path, hint: str = RESTORE) -> Stored:
        """The record in the file ``path``.

        Raises:
            UnknownVersionError: it has a version that this program does not read.
            CorruptDataError: it is missing or corrupt; the message ends with ``hint``.
        """
        body = self.format.unsealed(read_json(path, hint), path, hint)
        try:
            return from_json(self.kind, body)
        except (ValueError, ConfigError) as error:
            raise CorruptDataError(
                f"{path} is not a valid {self.format.name} ({error}); {hint}"
            ) from error


def numbered_files(path_of: Callable[[int], Path]) -> list[Path]:
    """The files ``path_of(0)``, ``path_of(1)``, … up to the first that is missing."""
    return list(takewhile(Path.exists, map(path_of, count())))


FileMark = tuple[int, ...] | None
"""Changes if a file is replaced; None if it is missing."""


def file_mark(path: Path) -> FileMark:
    """The mark of the file at ``path``."""
    try:
        facts = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


_kept: Final[dict[Path, tuple[FileMark, Any]]] = {}
"""Contents of files that were read, and their marks then."""


def read_numbered(
    path_of: Callable[[int], Path], read: Callable[[int], Stored]
) -> list[Stored]:
    """``read(0)``, ``read(1)``, … of :func:`numbered_files`; do not change the records.

    They are asked for often, so a file is read only once while it stays the same.
    """
    records: list[Stored] = []
    while (mark := file_mark(path := path_of(len(records)))) is not None:
        if path not in _kept or _kept[path][0] != mark:
            _kept[path] = mark, read(len(records))
        records.append(_kept[path][1])
    return records


def from_json(kind: type[Stored], body: object) -> Stored:
    """The ``kind``, a dataclass, whose ``asdict`` is ``body``; what has a default may be missing.

    Raises:
        ValueError: a field is missing, unknown, or of another type; names it.
        ConfigError: a value is out of the range that the dataclass itself checks.
    """
    try:
        text = to_json([body], inf_nan_mode="constants")
        found: list[Stored] = _adapter(kind).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"][1:])
        fault = "unknown" if first["type"] == "unexpected_keyword_argument" else first["msg"]
        raise ValueError(f"{field or kind.__name__}: {fault}") from error
    return found[0]


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Reads a list of ``kind``: a list takes a configuration, and hands it on to dataclasses."""
    listed: Any = list[kind]  # type: ignore[valid-type]
    return TypeAdapter(listed, config=ConfigDict(extra="forbid", strict=True))
