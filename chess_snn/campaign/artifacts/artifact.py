"""One kind of artifact that a campaign stores: a row of :mod:`chess_snn.campaign.artifacts.table`.

Everything that looks after stored files reads these rows and names no kind itself: ``verify``,
repair, rebuilding, ``gc`` and forks.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from chess_snn.campaign.store.folder import CampaignFolder

Key = tuple[int | str, ...]
"""The fields of an artifact's path, in order: ``(12, 3)`` for shard 3 of iteration 12."""
Contents = Mapping[str, Mapping[Key, Any]]
"""Contents that verify has read, by the artifact's name and key; None where it cannot be read."""

_FIELD: Final = re.compile(r"\{(\w+)(?::0(\d+)d)?\}")


@dataclass(frozen=True, slots=True)
class Whole:
    """An intact artifact: its content, and what it adds to the totals of verify."""

    content: Any
    num_bytes: int = 0
    num_games: int = 0
    num_positions: int = 0
    num_match_games: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """An artifact that cannot be read."""

    state: Literal["damaged", "unknown version"]
    text: str


Check = Callable[[CampaignFolder, Path], Whole]
"""Reads an artifact; raises a CorruptDataError if it is not what was committed."""


def _nothing(*_: Any) -> Iterable[Any]:
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class Artifact:
    """One row of the table."""

    name: str
    pattern: str
    """Path in the campaign: ``games/iter-{iteration:06d}/shard-{shard:04d}``. Of several rows whose
    pattern fits a path, the first one has it."""
    check: Check | None
    """None: no program reads its content again."""
    label: str = ""
    """Words for people, with the fields of the pattern; by default the path."""
    kind: str = ""
    """Verify counts it as this; by default its name."""
    is_folder: bool = False
    """A committed folder or Zip file with a manifest; otherwise a single file."""
    audit: Callable[[CampaignFolder, Sequence[Path], int], Iterable[Whole | Fault]] | None = None
    """Checks many more thoroughly, in that many processes; the outcomes in their order."""

    expected: Callable[[CampaignFolder, Contents], Iterable[tuple[str, Any]]] = _nothing
    """Paths that must exist, each with what a receipt says of it or None."""
    differences: Callable[[Any, Any], Iterable[str]] = _nothing
    """How the content of one differs from what a receipt says of it."""
    is_used: Callable[[CampaignFolder], bool] = lambda _: True
    """Whether artifacts of this kind are still read; verify leaves others out."""

    check_inputs: Callable[..., object] = _nothing
    """Raises a RemovedError if something that :attr:`make` reads was removed by gc; called with the
    folder and the key."""
    make: Callable[..., Any] | None = None
    """Makes and commits it, or finds it committed, and returns facts; called with the campaign's
    path and the key."""
    is_optional: bool = False
    """Whether the campaign continues without one that cannot be rebuilt."""

    after_repair: str = ""
    """Consequence once a corrupt one is quarantined; empty: repair leaves it where it is."""
    restore: Callable[[CampaignFolder, Key], bool] | None = None
    """Writes it again from other files; whether these have it."""
    resume_inputs: Callable[[CampaignFolder, Key], Iterable[Path]] = _nothing
    """Inputs of resume to write it again; repair leaves it where one of these was removed."""

    sort: str = ""
    """Its name in ``gc --keep``."""
    disposable: Callable[[CampaignFolder], Iterable[tuple[Path, str]]] = _nothing
    """Files that gc may remove, with the reasons."""
    kept: str = "always"
    """Words for people about those that gc keeps."""
    is_forked: bool = False
    """Whether a fork takes along those of earlier iterations."""

    @property
    def counted_as(self) -> str:
        """Kind, for the table of verify."""
        return self.kind or self.name

    @property
    def top(self) -> str:
        """The folder of the campaign that it is in."""
        return self.pattern.partition("/")[0]

    @property
    def glob(self) -> str:
        """Finds all of them, and maybe others."""
        return _FIELD.sub("*", self.pattern)

    def at(self, *key: int | str) -> str:
        """Path in the campaign, with ``/`` between parts."""
        return self.pattern.format(**self._fields(key))

    def describe(self, key: Key) -> str:
        """One of them, for people."""
        return (self.label or self.pattern).format(**self._fields(key))

    def parse(self, name: str) -> Key | None:
        """The key of what is at ``name`` in the campaign; None if the pattern does not fit."""
        found = _regex(self.pattern).fullmatch(name)
        if found is None:
            return None
        widths = _FIELD.findall(self.pattern)
        return tuple(
            int(text) if width else text
            for text, (_, width) in zip(found.groups(), widths, strict=True)
        )

    def _fields(self, key: Key) -> dict[str, int | str]:
        names = (name for name, _ in _FIELD.findall(self.pattern))
        return dict(zip(names, key, strict=True))


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    """Match the paths that ``pattern`` makes; a field of text does not begin with a dot."""
    parts, end = [], 0
    for field in _FIELD.finditer(pattern):
        parts.append(re.escape(pattern[end : field.start()]))
        parts.append(rf"(\d{{{field[2]},}})" if field[2] else r"([^/.][^/]*)")
        end = field.end()
    return re.compile("".join([*parts, re.escape(pattern[end:])]))


@dataclass(frozen=True, slots=True)
class Stored:
    """The place of one artifact, whether it is there or not."""

    artifact: Artifact
    key: Key

    @property
    def name(self) -> str:
        """Path in the campaign, with ``/`` between parts."""
        return self.artifact.at(*self.key)

    def path(self, folder: CampaignFolder) -> Path:
        """Its place in ``folder``."""
        return folder.path / self.name

    def __str__(self) -> str:
        """Words for people: ``shard 3 of iteration 12``."""
        return self.artifact.describe(self.key)
