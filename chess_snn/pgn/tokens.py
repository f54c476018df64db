"""Tokens of PGN other than moves: tag pairs, results, move numbers and signs."""

from typing import Final

import numpy as np

from chess_snn.jit import kernel
from chess_snn.pgn.moves import (
    DELIMITERS,
    is_en_passant_mark,
    octet,
    skip_en_passant_mark,
)
from chess_snn.types import UInt8Array

NO_RESULT: Final = 0
WHITE_WON: Final = 1
DRAWN: Final = 2
BLACK_WON: Final = 3
UNKNOWN_RESULT: Final = 4

NO_TAG: Final = -1
"""Instead of the end of a tag pair: there is none."""

_EVENT: Final = np.frombuffer(b"[Event", dtype=np.uint8)
_SIGNS: Final = np.zeros(256, dtype=np.uint8)
_SIGNS[np.frombuffer(b"+-=/\\~^<>|#_", dtype=np.uint8)] = 1
_LF, _CR, _TAB, _SPACE = 10, 13, 9, 32
_ZERO, _NINE, _ONE, _TWO = ord("0"), ord("9"), ord("1"), ord("2")
_SLASH, _DASH, _QUOTE = ord("/"), ord("-"), ord('"')
_CLOSE_TAG, _STAR = ord("]"), ord("*")
_NULL_ZEROS: Final = 4


@kernel
def is_event(text: UInt8Array, at: int) -> bool:
    """Whether the tag pair at ``at`` is ``Event``, which comes first in a game."""
    for k in range(len(_EVENT)):
        if octet(text, at + k) != _EVENT[k]:
            return False
    return octet(text, at + len(_EVENT)) in (_SPACE, _TAB, _QUOTE)


@kernel
def is_in_first_column(text: UInt8Array, at: int) -> bool:
    """Whether a line begins at ``at``."""
    return at == 0 or text[at - 1] in (_LF, _CR)


@kernel
def skip_line(text: UInt8Array, at: int) -> int:
    """To the end of the line."""
    while at < len(text) and text[at] not in (_LF, _CR):
        at += 1
    return at


@kernel
def skip_tag(text: UInt8Array, at: int) -> int:
    """Behind a tag pair ``[Name "value"]``, or NO_TAG; a value may hold quotes."""
    at = _skip_spaces(text, at + 1)
    name = at
    while not DELIMITERS[octet(text, at)] and octet(text, at) != _QUOTE:
        at += 1
    if at == name:
        return NO_TAG
    at = _skip_spaces(text, at)
    if octet(text, at) != _QUOTE:
        return NO_TAG
    at += 1
    while at < len(text) and text[at] not in (_LF, _CR):
        if text[at] == _QUOTE:
            end = _skip_spaces(text, at + 1)
            if octet(text, end) == _CLOSE_TAG:
                return end + 1
        at += 1
    return NO_TAG


@kernel
def _skip_spaces(text: UInt8Array, at: int) -> int:
    while octet(text, at) in (_SPACE, _TAB):
        at += 1
    return at


@kernel
def skip_number(text: UInt8Array, at: int) -> int:
    """Behind the digits at ``at``."""
    while _ZERO <= octet(text, at) <= _NINE:
        at += 1
    return at


@kernel
def is_move_number(text: UInt8Array, at: int) -> bool:
    """Whether digits at ``at`` number a move; ``0-0`` castles, and ``0000`` is no move."""
    end = skip_number(text, at)
    if end == at or octet(text, end) == _DASH:
        return False
    return not (end - at == _NULL_ZEROS and octet(text, at) == _ZERO)


@kernel
def is_number_one(text: UInt8Array, at: int) -> bool:
    """Whether the number at ``at`` is 1."""
    return octet(text, at) == _ONE and skip_number(text, at) == at + 1


@kernel
def read_result(text: UInt8Array, at: int) -> tuple[int, int]:
    """The result at ``at`` and where it ends; NO_RESULT where there is none."""
    first = octet(text, at)
    if first == _STAR:
        return UNKNOWN_RESULT, at + 1
    result, end = NO_RESULT, at
    if octet(text, at + 1) == _DASH:
        if first == _ONE and octet(text, at + 2) == _ZERO:
            result, end = WHITE_WON, at + 3
        elif first == _ZERO and octet(text, at + 2) == _ONE:
            result, end = BLACK_WON, at + 3
    elif _is_half(text, at):
        result, end = DRAWN, at + 3
        if octet(text, end) == _DASH and _is_half(text, end + 1):
            end += 4
    if not DELIMITERS[octet(text, end)]:
        return NO_RESULT, at
    return result, end


@kernel
def _is_half(text: UInt8Array, at: int) -> bool:
    return (
        octet(text, at) == _ONE and octet(text, at + 1) == _SLASH and octet(text, at + 2) == _TWO
    )


@kernel
def is_sign(text: UInt8Array, at: int) -> bool:
    """Signs that judge a position, such as ``+-`` and ``=``, or an ``e.p.`` that stands alone."""
    is_null = octet(text, at) == _DASH and octet(text, at + 1) == _DASH
    is_sign = bool(_SIGNS[octet(text, at)]) and not is_null
    return is_sign or is_en_passant_mark(text, at)


@kernel
def skip_sign(text: UInt8Array, at: int) -> int:
    """Behind the sign at ``at``."""
    if is_en_passant_mark(text, at):
        return skip_en_passant_mark(text, at)
    while _SIGNS[octet(text, at)]:
        at += 1
    return at
