"""Which program this is, to the byte: a digest of source files."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

_DIGEST_LENGTH: Final = 16


def sources_digest(
    root: Path, packages: Sequence[str], counts: Callable[[bytes], bool] = lambda _: True
) -> str:
    """Of names and contents of the Python files of ``packages``, folders in ``root``; 16 digits.

    Args:
        root: what names are told from.
        packages: names of folders in it.
        counts: whether a file with this content counts; by default all do.
    """
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            content = path.read_bytes()
            if counts(content):
                digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
                digest.update(content)
    return digest.hexdigest()[:_DIGEST_LENGTH]
