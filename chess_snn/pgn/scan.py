"""From octets of PGN to games: where each begins and ends, and the moves of its main line.

One pass over the text (PGN standard, 1994, section 7): comments, variations, glyphs, move numbers
and escaped lines are left out; of tag pairs only the extent is found. A game begins

- at a tag pair at the beginning of a line, behind a movetext or behind a result;
- at a second ``[Event`` among tag pairs;
- at ``[Event`` behind an empty line, even in a comment: one that was never closed costs one game
  and not the rest of the file;
- at a move behind a result.

It ends with its result, or where the next one begins. So whether something begins a game does not
depend on the games before it, and a text may be cut at any beginning.
"""

from typing import Final

import numpy as np

from chess_snn.jit import kernel
from chess_snn.pgn.moves import (
    DELIMITERS,
    UNREADABLE,
    is_en_passant_mark,
    octet,
    read_move,
    skip_en_passant_mark,
)
from chess_snn.types import Int32Array, Int64Array, UInt8Array

# Columns of a game's row.
START: Final = 0
"""First octet of the game."""
TAGS_END: Final = 1
"""Behind its tag pairs; START where it has none."""
FIRST_WORD: Final = 2
"""Its first move among the words; the next game's is the end of them."""
RESULT: Final = 3
"""One of the results below."""
FAULT: Final = 4
"""One of the faults below."""
FAULT_AT: Final = 5
"""Octet of the fault."""
GAME_COLUMNS: Final = 6

NO_RESULT: Final = 0
WHITE_WON: Final = 1
DRAWN: Final = 2
BLACK_WON: Final = 3
UNKNOWN_RESULT: Final = 4

NO_FAULT: Final = 0
BAD_TAG: Final = 1
BAD_WORD: Final = 2
BAD_OCTET: Final = 3
CUT: Final = 4
"""The game has moves but no result, or ends in a comment or variation."""

_BETWEEN, _TAGS, _MOVES = 0, 1, 2

_EVENT: Final = np.frombuffer(b"[Event", dtype=np.uint8)
_GLYPHS: Final = np.zeros(256, dtype=np.uint8)
_GLYPHS[np.frombuffer(b"+-=/\\~^<>|#_", dtype=np.uint8)] = 1
_LF, _CR, _TAB, _SPACE, _FF = 10, 13, 9, 32, 12
_BOM: Final = (0xEF, 0xBB, 0xBF)
_LAST_ASCII: Final = 127
_ZERO, _NINE, _ONE, _TWO = ord("0"), ord("9"), ord("1"), ord("2")
_SLASH, _DASH, _DOT, _QUOTE = ord("/"), ord("-"), ord("."), ord('"')
_OPEN_TAG, _CLOSE_TAG, _OPEN, _CLOSE = ord("["), ord("]"), ord("("), ord(")")
_OPEN_COMMENT, _CLOSE_COMMENT, _REST, _ESCAPE = ord("{"), ord("}"), ord(";"), ord("%")
_NAG, _STAR, _GOOD, _POOR = ord("$"), ord("*"), ord("!"), ord("?")
_NULL_ZEROS: Final = 4


class ScanBuffers:
    """Room for whatever a text of ``num_octets`` may hold; the system backs what is written."""

    def __init__(self, num_octets: int) -> None:
        self.games: Int64Array = np.empty((num_octets // 2 + 2, GAME_COLUMNS), dtype=np.int64)
        self.words: Int32Array = np.empty(num_octets // 2 + 2, dtype=np.int32)
        self.words_at: Int32Array = np.empty(num_octets // 2 + 2, dtype=np.int32)


@kernel
def scan(
    text: UInt8Array, games: Int64Array, words: Int32Array, words_at: Int32Array
) -> tuple[int, int]:
    """Find the games of ``text`` uint8[...], which begins at a game or at the file's first octet.

    Args:
        text: PGN; its last game counts as cut unless a result ends it.
        games: int64[..., GAME_COLUMNS], written, a row a game.
        words: int32[...], written: the moves of all games.
        words_at: int32[...], written: the octet each move begins at.

    Returns:
        The numbers of games and of words.
    """
    num_games = num_words = depth = p = 0
    mode = _BETWEEN
    in_comment = has_event = False
    line_is_empty = after_empty_line = True
    while p < len(text):
        c = int(text[p])
        if c in (_LF, _CR):
            if not (c == _LF and p > 0 and text[p - 1] == _CR):
                after_empty_line, line_is_empty = line_is_empty, True
            p += 1
            continue
        if c == _SPACE or _TAB <= c <= _FF:
            p += 1
            continue
        if c == _BOM[0] and octet(text, p + 1) == _BOM[1] and octet(text, p + 2) == _BOM[2]:
            p += 3
            continue
        is_first, line_is_empty = line_is_empty, False
        if c == _OPEN_TAG and _begins_game(
            text, p, mode, is_first, after_empty_line, in_comment, has_event
        ):
            _end_game(games, num_games, mode, in_comment, depth, p)
            _begin_game(games, num_games, num_words, p)
            num_games += 1
            mode, depth, in_comment, has_event = _TAGS, 0, False, False
        if in_comment:
            p = _skip_comment(text, p)
            if octet(text, p) == _CLOSE_COMMENT:
                in_comment = False
                p += 1
        elif c == _OPEN_COMMENT:
            in_comment = True
            p += 1
        elif c == _REST or (c == _ESCAPE and _is_in_first_column(text, p)):
            p = _skip_line(text, p)
        elif depth > 0:
            depth += (c == _OPEN) - (c == _CLOSE)
            p += 1
        elif c == _OPEN_TAG and mode == _TAGS:
            has_event |= _is_event(text, p)
            end = _skip_tag(text, p)
            if end < 0:
                _note(games, num_games, BAD_TAG, p)
                end = _skip_line(text, p)
            p = end
            games[num_games - 1, TAGS_END] = p
        elif c == _OPEN:
            mode = _MOVES if mode == _TAGS else mode
            depth = 1
            p += 1
        elif c in (_NAG, _DOT, _GOOD, _POOR):
            p = _skip_number(text, p + 1)
        else:
            result, end = _read_result(text, p)
            if mode == _BETWEEN and result == NO_RESULT:
                _begin_game(games, num_games, num_words, p)
                num_games += 1
            if result != NO_RESULT:
                if mode != _BETWEEN:  # a second result is nobody's
                    games[num_games - 1, RESULT] = result
                mode = _BETWEEN
                p = end
                continue
            mode = _MOVES
            if _is_move_number(text, p):
                end = _skip_number(text, p)
            elif _is_glyph(text, p):
                end = _skip_glyph(text, p)
            else:
                word, end = read_move(text, p)
                if word == UNREADABLE:
                    bad_octet = c == 0 or c > _LAST_ASCII
                    _note(games, num_games, BAD_OCTET if bad_octet else BAD_WORD, p)
                else:
                    words[num_words], words_at[num_words] = word, p
                    num_words += 1
            p = end
    _end_game(games, num_games, mode, in_comment, depth, len(text))
    games[num_games, START], games[num_games, FIRST_WORD] = len(text), num_words
    return num_games, num_words


@kernel
def _begin_game(games: Int64Array, index: int, num_words: int, at: int) -> None:
    games[index, START] = games[index, TAGS_END] = games[index, FAULT_AT] = at
    games[index, FIRST_WORD] = num_words
    games[index, RESULT] = NO_RESULT
    games[index, FAULT] = NO_FAULT


@kernel
def _end_game(
    games: Int64Array, num_games: int, mode: int, in_comment: bool, depth: int, at: int
) -> None:
    """Close the newest game where no result did."""
    if mode == _MOVES or (mode == _TAGS and (in_comment or depth > 0)):
        _note(games, num_games, CUT, at)


@kernel
def _note(games: Int64Array, num_games: int, fault: int, at: int) -> None:
    """The first fault of the newest game; a game that is cut is nothing else."""
    game = games[num_games - 1]
    if game[FAULT] == NO_FAULT or (fault == CUT and game[FAULT] != BAD_TAG):
        game[FAULT], game[FAULT_AT] = fault, at


@kernel
def _begins_game(
    text: UInt8Array, at: int, mode: int, is_first: bool, after_empty_line: bool,
    in_comment: bool, has_event: bool,
) -> bool:
    """Whether the bracket at ``at`` begins a game; see the rules at the head of the module."""
    if in_comment:
        return bool(is_first and after_empty_line and _is_event(text, at))
    if mode == _TAGS:
        return bool(is_first and has_event and _is_event(text, at))
    return is_first or mode == _BETWEEN


@kernel
def _is_event(text: UInt8Array, at: int) -> bool:
    for k in range(len(_EVENT)):
        if octet(text, at + k) != _EVENT[k]:
            return False
    return octet(text, at + len(_EVENT)) in (_SPACE, _TAB, _QUOTE)


@kernel
def _is_in_first_column(text: UInt8Array, at: int) -> bool:
    return at == 0 or text[at - 1] in (_LF, _CR)


@kernel
def _skip_line(text: UInt8Array, at: int) -> int:
    while at < len(text) and text[at] not in (_LF, _CR):
        at += 1
    return at


@kernel
def _skip_comment(text: UInt8Array, at: int) -> int:
    """To the end of a comment or of the line, whichever is first."""
    while at < len(text) and text[at] not in (_CLOSE_COMMENT, _LF, _CR):
        at += 1
    return at


@kernel
def _skip_tag(text: UInt8Array, at: int) -> int:
    """Behind a tag pair ``[Name "value"]``, -1 where it is none; a value may hold quotes."""
    at = _skip_spaces(text, at + 1)
    name = at
    while not DELIMITERS[octet(text, at)] and octet(text, at) != _QUOTE:
        at += 1
    if at == name:
        return -1
    at = _skip_spaces(text, at)
    if octet(text, at) != _QUOTE:
        return -1
    at += 1
    while at < len(text) and text[at] not in (_LF, _CR):
        if text[at] == _QUOTE:
            end = _skip_spaces(text, at + 1)
            if octet(text, end) == _CLOSE_TAG:
                return end + 1
        at += 1
    return -1


@kernel
def _skip_spaces(text: UInt8Array, at: int) -> int:
    while octet(text, at) in (_SPACE, _TAB):
        at += 1
    return at


@kernel
def _skip_number(text: UInt8Array, at: int) -> int:
    while _ZERO <= octet(text, at) <= _NINE:
        at += 1
    return at


@kernel
def _is_move_number(text: UInt8Array, at: int) -> bool:
    """Whether digits at ``at`` number a move; ``0-0`` castles, and ``0000`` is no move."""
    end = _skip_number(text, at)
    if end == at or octet(text, end) == _DASH:
        return False
    return not (end - at == _NULL_ZEROS and octet(text, at) == _ZERO)


@kernel
def _read_result(text: UInt8Array, at: int) -> tuple[int, int]:
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
def _is_glyph(text: UInt8Array, at: int) -> bool:
    """Signs that judge a position, such as ``+-`` and ``=``, or an ``e.p.`` that stands alone."""
    is_null = octet(text, at) == _DASH and octet(text, at + 1) == _DASH
    is_sign = bool(_GLYPHS[octet(text, at)]) and not is_null
    return is_sign or is_en_passant_mark(text, at)


@kernel
def _skip_glyph(text: UInt8Array, at: int) -> int:
    if is_en_passant_mark(text, at):
        return skip_en_passant_mark(text, at)
    while _GLYPHS[octet(text, at)]:
        at += 1
    return at
