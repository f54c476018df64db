"""Folders for campaigns nobody named."""

from itertools import count
from pathlib import Path


def next_campaign_path(preset: str, parent: Path = Path("campaigns")) -> Path:
    """The first of ``campaigns/<preset>-001``, ``-002``, … that does not exist."""
    names = (parent / f"{preset}-{number:03d}" for number in count(1))
    return next(path for path in names if not path.exists())
