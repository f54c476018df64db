"""What tag pairs say of a game: where it begins, how it ended, and which rules it follows."""

import math
import re
from dataclasses import dataclass
from typing import Final

from chess_snn.data import START_KINDS
from chess_snn.pgn.report import RefusedGameError
from chess_snn.pgn.tokens import BLACK_WON, DRAWN, UNKNOWN_RESULT, WHITE_WON

START_KIND_TAG: Final = "StartKind"
"""Our own: one of ``START_KINDS``, where a game's beginning is known."""
CUT_VALUE_TAG: Final = "CutValueWhite"
"""Our own: what a game cut by a ply cap counts as in training, in [-1, 1], white's view."""

RESULT_TEXTS: Final = {
    WHITE_WON: "1-0", BLACK_WON: "0-1", DRAWN: "1/2-1/2", UNKNOWN_RESULT: "*",
}

_RESULTS: Final = {text: result for result, text in RESULT_TEXTS.items()} | {"1/2": DRAWN}
_STANDARD_VARIANTS: Final = {"", "?", "-", "standard", "chess", "normal", "from position"}
_TAG: Final = re.compile(
    rb'\[[ \t]*(FEN|SetUp|Variant|Result|StartKind|CutValueWhite)[ \t]*"([^"\r\n]*)"[ \t]*\]',
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Header:
    """The tag pairs that matter to an import."""

    fen: str | None
    """Where the game begins; None for the initial position."""
    result: int | None
    """WHITE_WON, DRAWN or BLACK_WON; None where the header does not say."""
    start_kind: int
    """Index into ``START_KINDS``."""
    cut_value_white: float
    """In [-1, 1]; 0 unless the header says otherwise."""
    is_latin1: bool
    """Whether it is not UTF-8."""


PLAIN_START: Final = START_KINDS.index("ordinary")
"""Of a game from the initial position."""
POSITION_START: Final = START_KINDS.index("restart")
"""Of a game from a FEN: the middle of a game that nobody knows."""


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
        cut_value_white=_cut_value(found.get(CUT_VALUE_TAG.lower(), "0")),
        is_latin1=_decode(tags)[1],
    )


def _start_kind(text: str | None, fen: str | None) -> int:
    if text is None:
        return PLAIN_START if fen is None else POSITION_START
    if text not in START_KINDS:
        raise RefusedGameError("bad_header", f'[{START_KIND_TAG} "{text}"]')
    return START_KINDS.index(text)


def _cut_value(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not -1 <= value <= 1:
        raise RefusedGameError("bad_header", f'[{CUT_VALUE_TAG} "{text}"]')
    return value


def _decode(octets: bytes) -> tuple[str, bool]:
    """Text, and whether it had to be read as Latin-1."""
    try:
        return octets.decode(), False
    except UnicodeDecodeError:
        return octets.decode("latin-1"), True
