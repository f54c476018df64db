"""Dataclasses from JSON that others may have written: typed as declared, and nothing more."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Stored = TypeVar("Stored", bound="DataclassInstance")


def from_json(kind: type[Stored], body: object) -> Stored:
    """The ``kind``, a dataclass, whose ``asdict`` is ``body``; what has a default may be missing.

    Raises:
        ValueError: a field is missing, unknown, or of another type; names it.
        ConfigError: a value is out of the range that the dataclass itself checks.
    """
    try:
        found: Stored = _adapter(kind).validate_json(json.dumps(body), strict=True)
        unknown = _unknown(body, asdict(found), "")
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{field or kind.__name__}: {first['msg']}") from error
    except RecursionError as error:
        raise ValueError("values within values within values") from error
    if unknown:
        raise ValueError(f"{unknown[0]}: unknown")
    return found


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _unknown(told: Any, known: Any, place: str) -> list[str]:
    """Keys of ``told`` that ``known`` lacks, with their paths."""
    if isinstance(told, Mapping) and isinstance(known, Mapping):
        found = [f"{place}{key}" for key in told if key not in known]
        for key in known.keys() & told.keys():
            found += _unknown(told[key], known[key], f"{place}{key}.")
        return found
    if isinstance(told, list) and told and isinstance(told[0], Mapping):  # not a long list of names
        return [
            key for number, (a, b) in enumerate(zip(told, known, strict=True))
            for key in _unknown(a, b, f"{place}{number}.")
        ]
    return []
