"""Bytes that rot: a flipped bit, or a file cut short, in a shard or a committed folder."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Damage:
    """What was done to a file."""

    folder: Path
    """Of the shard or generation."""
    what: str


def damage_file(folder: Path, which: float, where: float) -> Damage:
    """Damage one file of a committed folder, manifest included.

    Args:
        folder: of a generation, or a shard's file.
        which: in [0, 1): file.
        where: in [0, 1): below a half a bit is flipped there, else the file is cut there.

    Raises:
        FileNotFoundError: the folder was moved away meanwhile.
    """
    found = [folder, *folder.rglob("*")]
    files = sorted(path for path in found if path.is_file() and path.stat().st_size)
    if not files:
        raise FileNotFoundError(folder)
    file = files[int(which * len(files))]
    name, size = file.relative_to(folder.parent).as_posix(), file.stat().st_size
    with file.open("r+b") as content:
        place = int(2 * where % 1 * size)
        if where >= 0.5:
            content.truncate(place)
            return Damage(folder, f"{name} cut from {size} to {place} bytes")
        bit = int(2 * where * size * 8) % 8
        content.seek(place)
        (octet,) = content.read(1)
        content.seek(place)
        content.write(bytes([octet ^ (1 << bit)]))
        return Damage(folder, f"bit {bit} of byte {place} of {name} flipped")

