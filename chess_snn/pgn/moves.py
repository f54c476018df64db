"""Reading one move of a movetext: from bytes to a word of :mod:`chess_snn.games.chess.san`.

Read are the moves of the PGN standard and what collections hold beside them: ``0-0``, ``e8Q``,
``e8(Q)``, ``e7e8q``, ``Ng1-f3``, ``Pe4``, ``exd6e.p.``, and any marks behind a move.
"""

from typing import Final

import numpy as np

from chess_snn.games.chess.layout import BISHOP, KING, KNIGHT, NO_PIECE, PAWN, QUEEN, ROOK
from chess_snn.games.chess.san import (
    CASTLING_SHIFT,
    FILE_SHIFT,
    KING_SIDE,
    NULL_MOVE,
    PIECE_SHIFT,
    PROMOTION_SHIFT,
    QUEEN_SIDE,
    RANK_SHIFT,
)
from chess_snn.jit import kernel
from chess_snn.types import UInt8Array

UNREADABLE: Final = -1
"""Instead of a word: this is not a move."""

_END: Final = 0
"""Read past the text; no byte of a move is 0."""


def table_of(text: str) -> UInt8Array:
    """uint8[256]: 1 at the bytes of ``text``."""
    table = np.zeros(256, dtype=np.uint8)
    table[list(text.encode("ascii"))] = 1
    return table


def _piece_table(codes: dict[str, np.uint64]) -> UInt8Array:
    table = np.zeros(256, dtype=np.uint8)
    for letter, code in codes.items():
        table[ord(letter)] = code
    return table


_PIECES: Final = _piece_table(
    {"P": PAWN, "N": KNIGHT, "B": BISHOP, "R": ROOK, "Q": QUEEN, "K": KING}
)
_PROMOTIONS: Final = _piece_table({
    "N": KNIGHT, "B": BISHOP, "R": ROOK, "Q": QUEEN,
    "n": KNIGHT, "b": BISHOP, "r": ROOK, "q": QUEEN,
})
_BETWEEN_SQUARES: Final = table_of("x-:")
_BEFORE_PROMOTION: Final = table_of("=/")
_MARKS: Final = table_of("+#!?")
_NULL_LETTERS: Final = table_of("-Z@")
DELIMITERS: Final = table_of(chr(_END) + " \t\v\f\r\n{}();$*.[]!?")
"""uint8[256]: 1 at what ends a word of the movetext."""

_A, _B, _H = ord("a"), ord("b"), ord("h")
_ONE, _EIGHT, _ZERO = ord("1"), ord("8"), ord("0")
_BIG_O, _SMALL_O, _DASH, _DOT, _X = ord("O"), ord("o"), ord("-"), ord("."), ord("x")
_E, _P, _OPEN, _CLOSE = ord("e"), ord("p"), ord("("), ord(")")
_PAWN, _NO_PIECE = int(PAWN), int(NO_PIECE)
_LEAST_CASTLING, _MOST_CASTLING = 2, 3


@kernel
def byte_at(text: UInt8Array, at: int) -> int:
    """The byte of ``text`` uint8[...] at ``at``, 0 behind its end."""
    return int(text[at]) if at < len(text) else _END


@kernel
def read_move(text: UInt8Array, at: int) -> tuple[int, int]:
    """The move that begins at ``at``, and where the text goes on behind it.

    A move must end where a word does; UNREADABLE takes the whole of its place.
    """
    word, end = _read_castling(text, at)
    if word == UNREADABLE:
        word, end = _read_null(text, at)
    if word == UNREADABLE:
        word, end = _read_squares(text, at)
    if word != UNREADABLE:
        end = _skip_marks(text, end)
        if DELIMITERS[byte_at(text, end)]:
            return word, end
    end = at + 1
    while not DELIMITERS[byte_at(text, end)]:
        end += 1
    return UNREADABLE, end


@kernel
def _read_castling(text: UInt8Array, at: int) -> tuple[int, int]:
    """``O-O`` and ``O-O-O``, with zeros or small letters, and with or without dashes."""
    letter = byte_at(text, at)
    if letter not in (_BIG_O, _SMALL_O, _ZERO):
        return UNREADABLE, at
    count = 0
    while byte_at(text, at) == letter:
        count += 1
        at += 1
        if byte_at(text, at) == _DASH and byte_at(text, at + 1) == letter:
            at += 1
    if count == _LEAST_CASTLING:
        return KING_SIDE << CASTLING_SHIFT, at
    if count == _MOST_CASTLING:
        return QUEEN_SIDE << CASTLING_SHIFT, at
    return UNREADABLE, at


@kernel
def _read_null(text: UInt8Array, at: int) -> tuple[int, int]:
    """``--``, ``Z0``, ``@@@@``: no move was made."""
    if not _NULL_LETTERS[byte_at(text, at)]:
        return UNREADABLE, at
    while _NULL_LETTERS[byte_at(text, at)] or byte_at(text, at) == _ZERO:
        at += 1
    return NULL_MOVE, at


@kernel
def _read_squares(text: UInt8Array, at: int) -> tuple[int, int]:
    """A piece, where it comes from, where it goes, and what it becomes."""
    piece = int(_PIECES[byte_at(text, at)])
    if piece != _NO_PIECE:
        at += 1
    from_file = from_rank = file = rank = promotion = 0
    while True:
        c = byte_at(text, at)
        if rank and file and (_is_promotion(text, at) or is_en_passant_mark(text, at)):
            break
        if _A <= c <= _H:
            # One more square, or file: what was read so far is where the move comes from.
            if from_file or from_rank:
                return UNREADABLE, at
            from_file, from_rank, file, rank = file, rank, c - _A + 1, 0
        elif _ONE <= c <= _EIGHT:
            if rank:
                return UNREADABLE, at
            rank = c - _ONE + 1
        elif not _BETWEEN_SQUARES[c]:
            break
        at += 1
    if not file or not rank:
        return UNREADABLE, at
    promotion, at = _read_promotion(text, at)
    if piece == _NO_PIECE and not (from_file and from_rank):
        piece = _PAWN
    if piece == _PAWN and not from_file:
        from_file = file  # a pawn that changes its file names the one it leaves
    word = (
        (rank - 1) * 8 + file - 1
        | piece << PIECE_SHIFT
        | from_file << FILE_SHIFT
        | from_rank << RANK_SHIFT
        | promotion << PROMOTION_SHIFT
    )
    return word, at


@kernel
def _is_promotion(text: UInt8Array, at: int) -> bool:
    """Return whether a piece stands at ``at``, and not the b of another square or of a file."""
    if not _PROMOTIONS[byte_at(text, at)]:
        return False
    after = byte_at(text, at + 1)
    return not (_A <= after <= _H or _ONE <= after <= _EIGHT or after == _X)


@kernel
def is_en_passant_mark(text: UInt8Array, at: int) -> bool:
    """Return whether ``e.p.`` or ``ep`` stands at ``at``."""
    return byte_at(text, at) == _E and byte_at(text, at + 1) in (_P, _DOT)


@kernel
def skip_en_passant_mark(text: UInt8Array, at: int) -> int:
    """Behind the mark at ``at``."""
    while byte_at(text, at) in (_E, _P, _DOT):
        at += 1
    return at


@kernel
def _read_promotion(text: UInt8Array, at: int) -> tuple[int, int]:
    """The piece of ``=Q``, ``Q``, ``/Q`` or ``(Q)``, and where it ends; 0 where there is none."""
    if byte_at(text, at) == _OPEN and byte_at(text, at + 2) == _CLOSE:
        piece = int(_PROMOTIONS[byte_at(text, at + 1)])
        return (piece, at + 3) if piece else (0, at)
    if _BEFORE_PROMOTION[byte_at(text, at)]:
        piece = int(_PROMOTIONS[byte_at(text, at + 1)])
        return (piece, at + 2) if piece else (0, at)
    piece = int(_PROMOTIONS[byte_at(text, at)])
    return (piece, at + 1) if piece else (0, at)


@kernel
def _skip_marks(text: UInt8Array, at: int) -> int:
    """Behind check marks, ``e.p.`` and annotations such as ``!?``."""
    while _MARKS[byte_at(text, at)]:
        at += 1
    if is_en_passant_mark(text, at):
        at = skip_en_passant_mark(text, at)
        while _MARKS[byte_at(text, at)]:
            at += 1
    return at
