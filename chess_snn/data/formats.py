"""Versions of what is stored: which of them this program reads, and what it says of the others.

Whatever is kept on the disk says which version of its format it is. A program writes one version of
each format and reads that and the ones before it for which there is an upgrade; anything else is
refused by name, and never guessed at. JSON objects may carry a digest of themselves, so that no
edit of them goes unnoticed.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from chess_snn.errors import CorruptDataError, UnknownVersionError
from chess_snn.types import Json

DIGEST: Final = "digest"
_VERSION: Final = "schema"

Upgrade = Callable[[Json], Json]
"""Makes of a body what the next version would have written in its place."""


def json_digest(value: object) -> str:
    """SHA-256, in hex, of ``value`` as JSON; key order does not matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def digest_of(body: Json) -> str:
    """SHA-256, in hex, of everything in ``body`` but its digest; key order does not matter."""
    rest = {name: value for name, value in body.items() if name != DIGEST}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def with_digest(body: Json) -> Json:
    """``body`` with its digest, which it must not have yet."""
    assert DIGEST not in body
    return body | {DIGEST: digest_of(body)}


def is_own_digest(body: Json) -> bool:
    """Return whether the digest that ``body`` carries is its own."""
    try:
        return bool(body.get(DIGEST) == digest_of(body))
    except ValueError:  # NaN, which this program never writes
        return False


@dataclass(frozen=True, slots=True)
class StoredFormat:
    """One kind of stored thing, and the versions of it that are read."""

    name: str
    """Name for people: ``"receipt"``."""
    version: int
    """The version that is written."""
    upgrades: Mapping[int, Upgrade] = field(default_factory=dict)
    """Upgrades by version, from the oldest that is read up to the one before ``version``."""
    has_digest: bool = False
    """True if a file carries a digest of itself."""

    def __post_init__(self) -> None:
        assert sorted(self.upgrades) == list(range(self.oldest, self.version))

    @property
    def oldest(self) -> int:
        """The oldest version that is read."""
        return min([*self.upgrades, self.version])

    def check(self, version: object, place: Path) -> int:
        """``version``, as found at ``place``, if it is one that is read.

        Raises:
            UnknownVersionError: it is not.
        """
        hint = "open it with the program that wrote it"
        if isinstance(version, int) and not isinstance(version, bool):
            if self.oldest <= version <= self.version:
                return version
            if version > self.version:
                hint = "a newer program wrote it: update this one, or go on with that one"
        reads = f"version {self.version}"
        if self.oldest < self.version:
            reads = f"versions {self.oldest} to {self.version}"
        raise UnknownVersionError(
            f"{place}: {self.name} version {version!r} is unknown, this program reads {reads}; "
            f"{hint}"
        )

    def upgraded(self, body: Json, version: object, place: Path) -> Json:
        """``body`` of ``version``, found at ``place``, as the present version would have it.

        Raises:
            UnknownVersionError: it is of a version that is not read.
        """
        for step in range(self.check(version, place), self.version):
            body = self.upgrades[step](body)
        return body

    def sealed(self, body: Json) -> Json:
        """``body`` as it is written to a file: with the version, and a digest if it has one."""
        body = {_VERSION: self.version} | body
        return with_digest(body) if self.has_digest else body

    def unsealed(self, body: Json, place: Path, hint: str) -> Json:
        """Return what :meth:`sealed` was given, or a writer of an earlier version.

        Args:
            body: as read from the file.
            place: of the file.
            hint: for people, what helps where it is damaged.

        Raises:
            UnknownVersionError: it is of a version that is not read.
            CorruptDataError: it is not what was written: its digest is not its own, or is gone.
        """
        if DIGEST in body and not is_own_digest(body):
            raise CorruptDataError(
                f"{place} is damaged: its digest is not that of its content; {hint}"
            )
        self.check(body.get(_VERSION), place)
        if self.has_digest and DIGEST not in body:
            raise CorruptDataError(f"{place} is damaged: its digest is gone; {hint}")
        rest = {name: value for name, value in body.items() if name not in (_VERSION, DIGEST)}
        return self.upgraded(rest, body.get(_VERSION), place)
