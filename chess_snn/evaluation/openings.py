"""Start positions of matches: distinct, reproducible, each played by both sides.

They come from the shipped book, or are a few random plies away from the initial position. The book
has short lines after which neither side is better: ``data/openings.txt`` has one line an opening,
``<number> <centipawns> <move> <move> ...``, moves in UCI, and says at its head how it was made
(a program in the history of this file). Stored matches name openings by their number in it, so a
shipped book is never changed: another book would be another file, with another name in
:attr:`BookLine.key`.
"""

import functools
from dataclasses import dataclass
from importlib import resources
from typing import Final, Literal

import numpy as np

from chess_snn.errors import ConfigError
from chess_snn.evaluation.solo import match_seeds
from chess_snn.games import get_game
from chess_snn.games.base import NO_ACTION, Game
from chess_snn.games.starts import random_starts
from chess_snn.rng import generator
from chess_snn.settings import check_range
from chess_snn.types import UInt64Array
from chess_snn.wording import counted

BOOK_FILE: Final = "data/openings.txt"
"""Beside this module."""
COMMENT: Final = "#"
"""Begins the lines of the head."""
BOOK_KEY: Final = "book:"
"""Begins the keys of openings of the book."""
OPENING_PLIES: Final = 4
"""Plies of a random opening in the matches of a campaign."""
OpeningSource = Literal["book", "random"]
"""Source of the openings of a match."""
_MAX_ROUNDS = 64
"""Rounds of drawing before giving up; a round draws twice as many starts as are wanted."""
_NUMBER: Final = "num_openings"
_BOOK_GAME: Final = "chess"
"""The one game that a book is shipped for."""


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


@functools.cache
def read_book() -> tuple[BookLine, ...]:
    """The lines of the shipped book, in the order of their numbers."""
    text = resources.files("chess_snn.evaluation").joinpath(BOOK_FILE).read_text(encoding="utf-8")
    rows = [row.split() for row in text.splitlines() if row and not row.startswith(COMMENT)]
    return tuple(
        BookLine(int(number), int(centipawns), tuple(moves)) for number, centipawns, *moves in rows
    )


def choose_openings(
    game: Game, source: OpeningSource, num_openings: int, *, num_plies: int, seed: int,
    setting: str = _NUMBER,
) -> UInt64Array:
    """:func:`book_openings`, or :func:`random_openings` of ``num_plies``, as ``source`` says.

    In a game of one player a match begins at seeds, not at positions, whatever ``num_plies`` is:
    :func:`chess_snn.evaluation.solo.match_seeds`, uint64[num_openings].
    """
    if game.spec.num_players == 1 and source == "random":
        return match_seeds(seed, num_openings)
    if source == "book":
        return book_openings(game, num_openings, seed, setting)
    return random_openings(game, num_openings, num_plies, seed, setting)


def book_openings(
    game: Game, num_openings: int, seed: int, setting: str = _NUMBER
) -> UInt64Array:
    """Openings of the shipped book, drawn without replacement.

    A longer list with the same seed begins with the shorter one.

    Args:
        game: whose positions they are; a book is shipped for chess.
        num_openings: how many, >= 1.
        seed: the same seed gives the same openings.
        setting: what asks for them, for errors.

    Returns:
        uint64[num_openings, W]: state rows, all different, none of an ended game.

    Raises:
        ConfigError: the book has not that many, or there is none.
    """
    check_range(setting, num_openings, ge=1)
    check_book(game, num_openings, setting)
    numbers = generator(seed, "book").permutation(len(read_book()))[:num_openings]
    openings: UInt64Array = _book_states()[numbers]
    return openings


def check_book(game: Game, num_openings: int, setting: str) -> None:
    """Refuse to play from a book that is too short.

    Raises:
        ConfigError: ``setting`` asks for more openings than the book of ``game`` has.
    """
    if game.spec.name != _BOOK_GAME:
        raise ConfigError(
            f"no book of openings is shipped for {game.spec.name}; take random openings"
        )
    if num_openings > len(read_book()):
        raise ConfigError(
            f"{setting} asks for {num_openings} openings, and the book has {len(read_book())}; "
            "ask for fewer, or take random openings"
        )


def opening_keys(game: Game, states: UInt64Array) -> tuple[str, ...]:
    """Return the names of ``states`` uint64[n, W] wherever matches are stored or rated.

    Equal keys are equal positions, in any match: ``book:0123`` in the book, else the position in
    the game's notation.
    """
    in_book = _book_numbers() if game.spec.name == _BOOK_GAME else {}
    numbers = [in_book.get(_identity(game, state)) for state in states]
    return tuple(
        game.format_state(state) if number is None else read_book()[number].key
        for number, state in zip(numbers, states, strict=True)
    )


def random_openings(
    game: Game, num_openings: int, num_plies: int, seed: int, setting: str = _NUMBER
) -> UInt64Array:
    """Distinct positions ``num_plies`` uniformly random half-moves after the initial one.

    A longer list with the same seed begins with the shorter one.

    Args:
        game: whose positions they are.
        num_openings: how many, >= 1.
        num_plies: half-moves, >= 0.
        seed: the same seed gives the same openings.
        setting: what asks for them, for errors.

    Returns:
        uint64[num_openings, W]: state rows, all different, none of an ended game.

    Raises:
        ConfigError: an argument is out of range, or there are not that many positions.
    """
    check_range(setting, num_openings, ge=1)
    check_range("num_plies", num_plies, ge=0)
    stream = generator(seed, "openings")
    openings = np.empty((0, game.spec.state_words), dtype=np.uint64)
    for _ in range(_MAX_ROUNDS):
        keys = stream.integers(0, 2**64, size=2 * num_openings, dtype=np.uint64)
        drawn = random_starts(game, keys, np.full(len(keys), num_plies, dtype=np.int32))
        openings = distinct_states(np.concatenate([openings, drawn]))
        if len(openings) >= num_openings:
            return openings[:num_openings]
    raise ConfigError(
        f"found {len(openings)} distinct positions {counted(num_plies, 'ply')} after the start of "
        f"{game.spec.name}, {setting} asks for {num_openings}; begin more plies after it, or ask "
        "for fewer"
    )


def distinct_states(states: UInt64Array) -> UInt64Array:
    """``states`` uint64[n, W] without repetitions, in order of first appearance."""
    _, first = np.unique(states, axis=0, return_index=True)
    distinct: UInt64Array = states[np.sort(first)]
    return distinct


@functools.cache
def _book_states() -> UInt64Array:
    """uint64[n, W]: the position after each line of the book; not to be written to."""
    game, lines = get_game(_BOOK_GAME), read_book()
    batch = game.allocate(len(lines))
    for ply in range(max(len(line.moves) for line in lines)):
        game.step(batch, np.array([
            game.parse_action(state, line.moves[ply]) if ply < len(line.moves) else NO_ACTION
            for state, line in zip(batch.state, lines, strict=True)
        ], dtype=np.int16))
    batch.state.setflags(write=False)
    return batch.state


@functools.cache
def _book_numbers() -> dict[bytes, int]:
    """Number in the book of each position in it."""
    game = get_game(_BOOK_GAME)
    return {_identity(game, state): number for number, state in enumerate(_book_states())}


def _identity(game: Game, state: UInt64Array) -> bytes:
    """Distinguishes a position from all others, clocks included."""
    return state[: game.spec.record_words].tobytes()
