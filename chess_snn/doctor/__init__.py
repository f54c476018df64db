"""Checks of this machine: does it have what campaigns need, and what is wrong with it?"""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    NOTE = "note"
    """Works, but less than it could; or is not used here."""
    BROKEN = "broken"
    """Campaigns cannot run, or something that was set up does not work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line."""

    subject: str
    """``CUDA``, ``disk``."""
    level: Level
    fact: str
    """Fact that was found."""
    remedy: str = ""
    """Advice; there is one wherever ``level`` is broken."""


def ok(subject: str, fact: str) -> Finding:
    """Nothing to do."""
    return Finding(subject, Level.OK, fact)


def note(subject: str, fact: str, remedy: str = "") -> Finding:
    """Something to know."""
    return Finding(subject, Level.NOTE, fact, remedy)


def broken(subject: str, fact: str, remedy: str) -> Finding:
    """Something to repair."""
    return Finding(subject, Level.BROKEN, fact, remedy)
