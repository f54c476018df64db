"""Tokens of PGN other than moves, and what tag pairs say of a game.

Tokens are tag pairs, results, move numbers and signs. Tag pairs say where a game begins, how it
ended, and which rules it follows.
"""

import math
import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from chess_snn.data import START_KINDS
from chess_snn.jit import kernel
from chess_snn.pgn.moves import (
    DELIMITERS,
    byte_at,
    is_en_passant_mark,
    skip_en_passant_mark,
    table_of,
)
from chess_snn.pgn.report import RefusedGameError
from chess_snn.types import UInt8Array

NO_RESULT: Final = 0
WHITE_WON: Final = 1
DRAWN: Final = 2
BLACK_WON: Final = 3
UNKNOWN_RESULT: Final = 4

NO_TAG: Final = -1
"""Instead of the end of a tag pair: there is none."""

_EVENT: Final = np.frombuffer(b"[Event", dtype=np.uint8)
_SIGNS: Final = table_of("+-=/\\~^<>|#_")
_LF, _CR, _TAB, _SPACE = 10, 13, 9, 32
_ZERO, _NINE, _ONE, _TWO = ord("0"), ord("9"), ord("1"), ord("2")
_SLASH, _DASH, _QUOTE = ord("/"), ord("-"), ord('"')
_CLOSE_TAG, _STAR = ord("]"), ord("*")
_NULL_ZEROS: Final = 4
START_KIND_TAG: Final = "StartKind"
"""Our own: one of ``START_KINDS``, where a game's beginning is known."""
TRUNCATED_VALUE_TAG: Final = "CutValueWhite"
"""Our own: what a truncated game counts as in training, in [-1, 1], white's view."""

RESULT_TEXTS: Final = {
    WHITE_WON: "1-0", BLACK_WON: "0-1", DRAWN: "1/2-1/2", UNKNOWN_RESULT: "*",
}

_RESULTS: Final = {text: result for result, text in RESULT_TEXTS.items()} | {"1/2": DRAWN}
_STANDARD_VARIANTS: Final = {"", "?", "-", "standard", "chess", "normal", "from position"}
_TAG: Final = re.compile(
    rb'\[[ \t]*(FEN|SetUp|Variant|Result|StartKind|CutValueWhite)[ \t]*"([^"\r\n]*)"[ \t]*\]',
    re.IGNORECASE,
)


@kernel
def is_event(text: UInt8Array, at: int) -> bool:
    """Return whether the tag pair at ``at`` is ``Event``, which comes first in a game."""
    for k in range(len(_EVENT)):
        if byte_at(text, at + k) != _EVENT[k]:
            return False
    return byte_at(text, at + len(_EVENT)) in (_SPACE, _TAB, _QUOTE)


@kernel
def is_in_first_column(text: UInt8Array, at: int) -> bool:
    """Return whether a line begins at ``at``."""
    return at == 0 or text[at - 1] in (_LF, _CR)


@kernel
def skip_line(text: UInt8Array, at: int) -> int:
    """Return the end of the line."""
    while at < len(text) and text[at] not in (_LF, _CR):
        at += 1
    return at


@kernel
def skip_tag(text: UInt8Array, at: int) -> int:
    """Behind a tag pair ``[Name "value"]``, or NO_TAG; a value may hold quotes."""
    at = _skip_spaces(text, at + 1)
    name = at
    while not DELIMITERS[byte_at(text, at)] and byte_at(text, at) != _QUOTE:
        at += 1
    if at == name:
        return NO_TAG
    at = _skip_spaces(text, at)
    if byte_at(text, at) != _QUOTE:
        return NO_TAG
    at += 1
    while at < len(text) and text[at] not in (_LF, _CR):
        if text[at] == _QUOTE:
            end = _skip_spaces(text, at + 1)
            if byte_at(text, end) == _CLOSE_TAG:
                return end + 1
        at += 1
    return NO_TAG


@kernel
def _skip_spaces(text: UInt8Array, at: int) -> int:
    while byte_at(text, at) in (_SPACE, _TAB):
        at += 1
    return at


@kernel
def skip_number(text: UInt8Array, at: int) -> int:
    """Behind the digits at ``at``."""
    while _ZERO <= byte_at(text, at) <= _NINE:
        at += 1
    return at


@kernel
def is_move_number(text: UInt8Array, at: int) -> bool:
    """Return whether digits at ``at`` number a move; ``0-0`` castles, ``0000`` is a null move."""
    end = skip_number(text, at)
    if end == at or byte_at(text, end) == _DASH:
        return False
    return not (end - at == _NULL_ZEROS and byte_at(text, at) == _ZERO)


@kernel
def is_number_one(text: UInt8Array, at: int) -> bool:
    """Return whether the number at ``at`` is 1."""
    return byte_at(text, at) == _ONE and skip_number(text, at) == at + 1


@kernel
def read_result(text: UInt8Array, at: int) -> tuple[int, int]:
    """The result at ``at`` and where it ends; NO_RESULT where there is none."""
    first = byte_at(text, at)
    if first == _STAR:
        return UNKNOWN_RESULT, at + 1
    result, end = NO_RESULT, at
    if byte_at(text, at + 1) == _DASH:
        if first == _ONE and byte_at(text, at + 2) == _ZERO:
            result, end = WHITE_WON, at + 3
        elif first == _ZERO and byte_at(text, at + 2) == _ONE:
            result, end = BLACK_WON, at + 3
    elif _is_half(text, at):
        result, end = DRAWN, at + 3
        if byte_at(text, end) == _DASH and _is_half(text, end + 1):
            end += 4
    if not DELIMITERS[byte_at(text, end)]:
        return NO_RESULT, at
    return result, end


@kernel
def _is_half(text: UInt8Array, at: int) -> bool:
    return (
        byte_at(text, at) == _ONE
        and byte_at(text, at + 1) == _SLASH
        and byte_at(text, at + 2) == _TWO
    )


@kernel
def is_sign(text: UInt8Array, at: int) -> bool:
    """Signs that judge a position, such as ``+-`` and ``=``, or an ``e.p.`` that stands alone."""
    is_null = byte_at(text, at) == _DASH and byte_at(text, at + 1) == _DASH
    is_sign = bool(_SIGNS[byte_at(text, at)]) and not is_null
    return is_sign or is_en_passant_mark(text, at)


@kernel
def skip_sign(text: UInt8Array, at: int) -> int:
    """Behind the sign at ``at``."""
    if is_en_passant_mark(text, at):
        return skip_en_passant_mark(text, at)
    while _SIGNS[byte_at(text, at)]:
        at += 1
    return at


@dataclass(frozen=True, slots=True)
class Header:
    """The tag pairs that matter to an import."""

    fen: str | None
    """Position that the game begins at; None for the initial position."""
    result: int | None
    """WHITE_WON, DRAWN or BLACK_WON; None where the header does not say."""
    start_kind: int
    """Index into ``START_KINDS``."""
    truncated_value_white: float
    """Value in [-1, 1]; 0 unless the header says otherwise."""
    is_latin1: bool
    """True if it is not UTF-8."""


PLAIN_START: Final = START_KINDS.index("ordinary")
"""Mark of a game from the initial position."""
POSITION_START: Final = START_KINDS.index("restart")
"""Mark of a game from a FEN, the beginning of which is unknown."""


def parse_header(tags: bytes) -> Header:
    """The header of one game.

    Raises:
        RefusedGameError: another variant, tags that contradict each other, or a bad value.
    """
    found: dict[str, str] = {}
    for name, value in _TAG.findall(tags):
        key, text = name.decode().lower(), _decode(value)[0].strip()
        if found.setdefault(key, text) != text:
            raise RefusedGameError("bad_header", f'[{name.decode()} "{text}"]')
    variant = found.get("variant", "")
    if variant.lower() not in _STANDARD_VARIANTS:
        raise RefusedGameError("variant", variant)
    fen = found.get("fen") or None
    if fen is None and found.get("setup") == "1":
        raise RefusedGameError("bad_header", '[SetUp "1"] without [FEN …]')
    result = _RESULTS.get(found.get("result", ""))
    return Header(
        fen=fen,
        result=None if result == UNKNOWN_RESULT else result,
        start_kind=_start_kind(found.get(START_KIND_TAG.lower()), fen),
        truncated_value_white=_truncated_value(found.get(TRUNCATED_VALUE_TAG.lower(), "0")),
        is_latin1=_decode(tags)[1],
    )


def _start_kind(text: str | None, fen: str | None) -> int:
    if text is None:
        return PLAIN_START if fen is None else POSITION_START
    if text not in START_KINDS:
        raise RefusedGameError("bad_header", f'[{START_KIND_TAG} "{text}"]')
    return START_KINDS.index(text)


def _truncated_value(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not -1 <= value <= 1:
        raise RefusedGameError("bad_header", f'[{TRUNCATED_VALUE_TAG} "{text}"]')
    return value


def _decode(data: bytes) -> tuple[str, bool]:
    """Text, and whether it had to be read as Latin-1."""
    try:
        return data.decode(), False
    except UnicodeDecodeError:
        return data.decode("latin-1"), True
