"""Everything that a power cut could leave of a folder while steps write to it.

``RecordedDisk`` notes what a folder holds around every call that makes, renames, links, removes or
syncs a file, and what of it is on the disk for certain. A file system may write the rest in any
order and in part, so a cut may leave any mixture of it, as in ALICE (Pillai et al., OSDI 2014) and
CrashMonkey (Mohan et al., OSDI 2018). Each mixture is laid out and read as after a restart.
"""

import itertools
import math
import os
import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from chess_snn.data import read_manifest, verify_folder
from chess_snn.errors import CorruptDataError
from chess_snn.failpoints import FailpointError

MOST_MIXTURES = 64
"""Mixtures of one cut that are tried one by one; of more, the plainest and a random sample."""
CALLS = ("fsync", "rename", "replace", "link", "unlink", "rmdir", "mkdir")

Tree = dict[str, bytes | None]
"""Files by path with their content, and folders with None."""
Key = int | tuple[int, str]
"""A file by its inode, or a name by the inode of its folder."""
Value = bytes | int | None
"""The content of a file; or the inode that a name stands for, None where there is no such name."""


@dataclass
class RecordedDisk:
    """The files below ``root``, and what a power cut would leave of them."""

    root: Path
    skipped: int | None = None
    """The number of a sync that has no effect."""
    step: int = 0
    num_syncs: int = 0
    cuts: list[tuple[int, list[Tree]]] = field(default_factory=list)
    """The step that was cut, and all that it could leave."""
    _known: dict[Key, list[Value]] = field(default_factory=dict)
    """Values that are on the disk for certain, and all that were there since."""
    _folders: set[int] = field(default_factory=set)
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "RecordedDisk":
        for call in CALLS:
            self._open.enter_context(patch.object(os, call, self._recorded(getattr(os, call))))
        self._note(self.root)
        for values in self._known.values():
            del values[:-1]
        return self

    def __exit__(self, *error: object) -> None:
        self._cut()
        self._open.close()

    def _recorded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: Any, **options: Any) -> Any:
            self._cut()
            answer = call(*args, **options)
            if call.__name__ == "fsync":
                self._sync(os.fstat(args[0]).st_ino)
            self._cut()
            return answer

        return recorded

    def _sync(self, inode: int) -> None:
        if self.num_syncs != self.skipped:
            for key, values in self._known.items():
                if key == inode or (isinstance(key, tuple) and key[0] == inode):
                    del values[:-1]
        self.num_syncs += 1

    def _cut(self) -> None:
        self._note(self.root)
        self.cuts.append((self.step, list(self._trees())))

    def _note(self, folder: Path) -> None:
        """Note what ``folder`` holds now."""
        inode = self._inode(folder)
        entries = {entry.name: entry for entry in os.scandir(folder)}
        for name in self._names(inode) | entries.keys():
            there = self._inode(folder / name) if name in entries else None
            self._add((inode, name), there, at_first=None)
            if there is not None and entries[name].is_dir():
                self._folders.add(there)
                self._note(folder / name)
            elif there is not None:
                self._add(there, (folder / name).read_bytes(), at_first=b"")

    def _add(self, key: Key, value: Value, at_first: Value) -> None:
        values = self._known.setdefault(key, [at_first])
        if values[-1] != value:
            values.append(value)

    def _names(self, inode: int) -> set[str]:
        return {key[1] for key in self._known if isinstance(key, tuple) and key[0] == inode}

    def _inode(self, path: Path) -> int:
        inode = path.stat().st_ino
        if inode not in self._known and inode not in self._folders:
            # An open file keeps its inode from being given to another one.
            self._open.callback(os.close, os.open(path, os.O_RDONLY))
        return inode

    def _trees(self) -> Iterator[Tree]:
        unsure = {
            key: list(dict.fromkeys([*values, *_torn(values)]))
            for key, values in self._known.items() if len(values) > 1
        }
        certain = {key: values[0] for key, values in self._known.items()}
        for mixture in _mixtures(list(unsure.values())):
            left = certain | dict(zip(unsure, mixture, strict=True))
            yield dict(self._tree(left, self._inode(self.root), ""))

    def _tree(
        self, left: dict[Key, Value], inode: int, place: str
    ) -> Iterator[tuple[str, bytes | None]]:
        for key, there in left.items():
            if isinstance(key, tuple) and key[0] == inode and isinstance(there, int):
                path = place + key[1]
                if there in self._folders:
                    yield path, None
                    yield from self._tree(left, there, f"{path}/")
                else:
                    content = left[there]
                    assert isinstance(content, bytes)
                    yield path, content


def _torn(values: Sequence[Value]) -> list[Value]:
    """Contents of a file of whose last write only a part is on the disk."""
    old, new = values[0], values[-1]
    if not isinstance(old, bytes) or not isinstance(new, bytes):
        return []
    half, padded = len(new) // 2, old.ljust(len(new), b"\0")
    return [new[:half] + old[half:], padded[:half] + new[half:], padded]


def _mixtures(choices: Sequence[Sequence[Value]]) -> Iterator[tuple[Value, ...]]:
    if math.prod(map(len, choices)) <= MOST_MIXTURES:
        yield from itertools.product(*choices)
        return
    for end in (0, -1):  # nothing since the last sync, or everything; and each with one exception
        base = [choice[end] for choice in choices]
        for i, choice in enumerate(choices):
            yield from ((*base[:i], other, *base[i + 1:]) for other in choice)
    draw = random.Random(0)
    yield from (tuple(map(draw.choice, choices)) for _ in range(MOST_MIXTURES))


def faults(
    base: Path, steps: Sequence[Callable[[Path], object]], read: Callable[[Path], Hashable],
    skipped: int | None = None, *, is_sealed_last: bool = False,
) -> list[str]:
    """Describe what is wrong after some cut of ``steps``.

    A cut during a step may leave what ``read`` finds before or after it. What it finds after a step
    that returned stays; a step that raises a FailpointError promises nothing.

    Args:
        base: a folder to work in.
        steps: take the folder that they write to.
        read: describes what is in that folder; a CorruptDataError is a fault.
        skipped: the number of a sync that has no effect.
        is_sealed_last: also demand that everything with a manifest is whole, even under a temporary
            name.
    """
    root = base / "disk"
    root.mkdir(parents=True)
    left = [read(root)]
    allowed = [left]
    with RecordedDisk(root, skipped) as disk:
        for step in steps:
            disk.step += 1
            is_promised = False
            with suppress(FailpointError):
                step(root)
                is_promised = True
            allowed.append([*left, read(root)])
            left = [read(root)] if is_promised else allowed[-1]
        disk.step += 1
        allowed.append(left)
    assert skipped is None or skipped < disk.num_syncs
    found: dict[frozenset[tuple[str, bytes | None]], object] = {}
    wrong = []
    for step_number, trees in disk.cuts:
        for tree in trees:
            state = frozenset(tree.items())
            if state not in found:
                folder = base / f"cut-{len(found)}"
                found[state] = _read_after(folder, tree, read, is_sealed_last)
            if found[state] not in allowed[step_number]:
                wrong.append(f"step {step_number} left {sorted(tree)}: {found[state]}")
    return wrong


def _read_after(
    folder: Path, tree: Tree, read: Callable[[Path], Hashable], is_sealed_last: bool
) -> object:
    folder.mkdir()
    for name, content in sorted(tree.items()):
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)
    try:
        if is_sealed_last:
            for path in filter(_has_manifest, folder.rglob(".tmp-*")):
                verify_folder(path)
        return read(folder)
    except CorruptDataError as error:
        return error


def _has_manifest(path: Path) -> bool:
    with suppress(CorruptDataError):
        return bool(read_manifest(path))
    return False
