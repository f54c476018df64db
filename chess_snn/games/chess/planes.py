"""Binary input planes of a position, and its material, from the side to move's point of view.

A plane is one ``uint64``: bit s is square s of the view (black's boards flipped vertically).
Counters are thermometers, one all-ones plane a threshold passed, so that every input is a bit.

The last planes follow from the rules: they show at once what a convolution of 3x3 would need seven
layers to see, how far a rook looks (docs/decisions/0037-rule-planes.md).
"""

from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO, count_trailing_zeros, population_count, swap_bytes
from chess_snn.games.chess.layout import (
    META,
    NO_SQUARE,
    REPETITIONS_MASK,
    REPETITIONS_SHIFT,
)
from chess_snn.games.chess.rows import castling_view, ep_view, halfmove_clock, load_view
from chess_snn.games.chess.tables import piece_attacks, up_left, up_right
from chess_snn.jit import kernel
from chess_snn.types import Float32Array, UInt64Array

CLOCK_THRESHOLDS: Final = (4, 8, 16, 32, 48, 64, 80, 96)
"""Halfmove clock from which each fifty-move plane is lit."""
REPETITION_THRESHOLDS: Final = (1, 2)
"""Earlier occurrences from which each repetition plane is lit."""
_PIECES: Final = ("pawns", "knights", "bishops", "rooks", "queens", "king")

_SEEING: Final = ("knight", "bishop", "rook")
"""Kinds of pieces from whose squares a king would be attacked."""
_RULE_PLANES: Final = tuple(
    name.format(side)
    for side in ("own", "their")
    for name in (
        *(f"attacked by {{}} {piece}" for piece in _PIECES),
        "attacked by two {} pieces",
        *(f"a {piece} would attack {{}} king" for piece in _SEEING),
    )
)
NUM_RULE_PLANES: Final = len(_RULE_PLANES)

PLANE_NAMES: Final = (
    *(f"own {piece}" for piece in _PIECES),
    *(f"their {piece}" for piece in _PIECES),
    "own king side castling",
    "own queen side castling",
    "their king side castling",
    "their queen side castling",
    "en passant square",
    *(f"halfmove clock >= {threshold}" for threshold in CLOCK_THRESHOLDS),
    *(f"repetitions >= {threshold}" for threshold in REPETITION_THRESHOLDS),
    "ones",
    *_RULE_PLANES,
)
"""Name of each plane, in order."""

_NUM_KINDS: Final = len(_PIECES)
_NUM_SEEING: Final = len(_SEEING)
_CASTLING: Final = PLANE_NAMES.index("own king side castling")
_EP: Final = PLANE_NAMES.index("en passant square")
_CLOCK: Final = _EP + 1
_REPETITIONS: Final = _CLOCK + len(CLOCK_THRESHOLDS)
_ONES: Final = PLANE_NAMES.index("ones")
_OWN_RULES: Final = _ONES + 1
_THEIR_RULES: Final = _OWN_RULES + NUM_RULE_PLANES // 2

_ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_NUM_RIGHTS: Final = 4
_CLOCK_WORDS: Final = np.array(CLOCK_THRESHOLDS, dtype=np.uint64)
_REPETITION_WORDS: Final = np.array(REPETITION_THRESHOLDS, dtype=np.uint64)
_PAWN_VALUES: Final = np.array([1, 3, 3, 5, 9, 0], dtype=np.int64)


@kernel
def _kind(code0: np.uint64, code1: np.uint64, code2: np.uint64, kind: int) -> np.uint64:
    """Squares of a kind of piece, 0 pawns to 5 kings: those whose code is ``kind + 1``."""
    code = kind + 1
    squares = code0 if code & 1 else ~code0
    squares &= code1 if code & 2 else ~code1
    return squares & (code2 if code & 4 else ~code2)


@kernel
def write_planes(states: UInt64Array, planes: UInt64Array) -> None:
    """Fill ``planes`` uint64[B, 48] from ``states`` uint64[B, >= 5]."""
    for i in range(len(states)):
        row = states[i]
        code0, code1, code2, own = load_view(row)
        for kind in range(_NUM_KINDS):
            squares = _kind(code0, code1, code2, kind)
            planes[i, kind] = squares & own
            planes[i, _NUM_KINDS + kind] = squares & ~own
        rights = castling_view(row)
        for right in range(_NUM_RIGHTS):
            planes[i, _CASTLING + right] = _ALL if rights >> np.uint64(right) & ONE else ZERO
        ep = ep_view(row)
        planes[i, _EP] = ONE << ep if ep != NO_SQUARE else ZERO
        clock = halfmove_clock(row)
        for k in range(len(_CLOCK_WORDS)):
            planes[i, _CLOCK + k] = _ALL if clock >= _CLOCK_WORDS[k] else ZERO
        repetitions = row[META] >> REPETITIONS_SHIFT & REPETITIONS_MASK
        for k in range(len(_REPETITION_WORDS)):
            planes[i, _REPETITIONS + k] = _ALL if repetitions >= _REPETITION_WORDS[k] else ZERO
        planes[i, _ONES] = _ALL
        occupied = code0 | code1 | code2
        _write_rule_planes(planes[i, :_NUM_KINDS], False, occupied, planes[i, _OWN_RULES:])
        _write_rule_planes(
            planes[i, _NUM_KINDS:_CASTLING], True, occupied, planes[i, _THEIR_RULES:]
        )


@kernel
def _write_rule_planes(
    pieces: UInt64Array, go_down: bool, occupied: np.uint64, planes: UInt64Array
) -> None:
    """Fill ``planes`` uint64[>= 10] of one side, whose ``pieces`` uint64[6] are given by kind."""
    pawns = swap_bytes(pieces[0]) if go_down else pieces[0]
    left, right = up_left(pawns), up_right(pawns)
    if go_down:
        left, right = swap_bytes(left), swap_bytes(right)
    once, twice = left | right, left & right
    planes[0] = once
    for kind in range(1, _NUM_KINDS):
        by_kind, rest = ZERO, pieces[kind]
        while rest != ZERO:
            attacked = piece_attacks(np.uint64(kind + 1), count_trailing_zeros(rest), occupied)
            twice |= once & attacked
            once |= attacked
            by_kind |= attacked
            rest &= rest - ONE
        planes[kind] = by_kind
    planes[_NUM_KINDS] = twice
    king = count_trailing_zeros(pieces[_NUM_KINDS - 1])
    for kind in range(1, _NUM_SEEING + 1):
        planes[_NUM_KINDS + kind] = piece_attacks(np.uint64(kind + 1), king, occupied)


@kernel
def write_material(states: UInt64Array, material: Float32Array) -> None:
    """Fill ``material`` float32[B] with the side to move's balance in pawns (1, 3, 3, 5, 9)."""
    for i in range(len(states)):
        code0, code1, code2, own = load_view(states[i])
        balance = 0
        for kind in range(_NUM_KINDS):
            squares = _kind(code0, code1, code2, kind)
            mine = np.int64(population_count(squares & own))
            theirs = np.int64(population_count(squares & ~own))
            balance += _PAWN_VALUES[kind] * (mine - theirs)
        material[i] = balance
