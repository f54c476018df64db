"""How much room things on the disk take."""

import stat
from contextlib import suppress
from pathlib import Path

from chess_snn.data.manifest import MANIFEST_NAME, read_manifest
from chess_snn.errors import CorruptDataError


def stored_bytes(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; what others remove meanwhile is 0.

    Of a committed folder its manifest knows: one file to read instead of dozens to look at, which
    on a cold disk makes the difference.
    """
    try:
        facts = path.lstat()
        if not stat.S_ISDIR(facts.st_mode):
            return facts.st_size
        with suppress(CorruptDataError):  # then its files are looked at
            manifest = read_manifest(path)
            return manifest.num_bytes + (path / MANIFEST_NAME).lstat().st_size
        return sum(map(stored_bytes, path.iterdir()))
    except FileNotFoundError:
        return 0
