"""The shipped book: short lines from the initial position after which neither side is better.

``data/openings.txt`` has one line an opening, ``<number> <centipawns> <move> <move> ...``, moves in
UCI, and says at its head how it was made (:mod:`chess_snn.evaluation.book_making`). Stored matches
name openings by their number in it, so a book that was shipped is never changed: another book would
be another file, with another name in :attr:`BookLine.key`.
"""

import functools
from dataclasses import dataclass
from importlib import resources
from typing import Final

from chess_snn.errors import CorruptDataError

BOOK_FILE: Final = "data/openings.txt"
"""Beside this module."""
COMMENT: Final = "#"
"""Begins the lines of the head."""
BOOK_KEY: Final = "book:"
"""Begins the keys of openings of the book."""


@dataclass(frozen=True, slots=True)
class BookLine:
    """One opening."""

    number: int
    """Its place in the book, from 0."""
    centipawns_white: int
    """The engine's evaluation after the last move, white's view."""
    moves: tuple[str, ...]
    """UCI, from the initial position."""

    @property
    def key(self) -> str:
        """``book:0123``: what ratings and stored matches call it."""
        return f"{BOOK_KEY}{self.number:04d}"

    def __str__(self) -> str:
        """As it stands in the file."""
        return " ".join([f"{self.number:04d}", f"{self.centipawns_white:+d}", *self.moves])


@functools.cache
def read_book() -> tuple[BookLine, ...]:
    """The lines of the shipped book, in the order of their numbers.

    Raises:
        CorruptDataError: the installed file was cut or edited.
    """
    text = resources.files("chess_snn.evaluation").joinpath(BOOK_FILE).read_text(encoding="utf-8")
    rows = [row for row in text.splitlines() if row and not row.startswith(COMMENT)]
    return tuple(_parse(row, number) for number, row in enumerate(rows))


def _parse(row: str, number: int) -> BookLine:
    try:
        first, centipawns, *moves = row.split()
        line = BookLine(int(first), int(centipawns), tuple(moves))
    except ValueError:
        line = None
    if line is None or line.number != number or not line.moves:
        raise CorruptDataError(
            f"opening {number} of the shipped book reads {row!r}; install chess-snn again"
        )
    return line
