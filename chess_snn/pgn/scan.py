"""Scan bytes of PGN for games: where each begins and ends, and the moves of its main line.

One pass over the text (PGN standard, 1994, section 7): comments, variations, glyphs, move numbers
and escaped lines are left out; of tag pairs only the extent is found. A game begins

- at a tag pair at the beginning of a line, behind a movetext or behind a result;
- at a second ``[Event`` among tag pairs;
- at ``[Event`` behind an empty line, even in a comment: one that was never closed costs one game
  and not the rest of the file;
- at a move behind a result; one with another number than 1 has no beginning, and is bad.

It ends with its result, or where the next one begins. So whether something begins a game does not
depend on the games before it, and a text may be cut at any beginning.
"""

from typing import Final

import numpy as np

from chess_snn.jit import int64, kernel
from chess_snn.pgn.moves import UNREADABLE, byte_at, read_move
from chess_snn.pgn.tokens import (
    NO_RESULT,
    NO_TAG,
    is_event,
    is_in_first_column,
    is_move_number,
    is_number_one,
    is_sign,
    read_result,
    skip_line,
    skip_number,
    skip_sign,
    skip_tag,
)
from chess_snn.types import Int32Array, Int64Array, UInt8Array

# Columns of a game's row.
START: Final = 0
"""First byte of the game."""
TAGS_END: Final = 1
"""Behind its tag pairs; START where it has none."""
FIRST_WORD: Final = 2
"""Its first move among the words; the next game's is the end of them."""
RESULT: Final = 3
"""One of the results below."""
FAULT: Final = 4
"""One of the faults below."""
FAULT_AT: Final = 5
"""Byte of the fault."""
GAME_COLUMNS: Final = 6

NO_FAULT: Final = 0
BAD_TAG: Final = 1
BAD_WORD: Final = 2
BAD_BYTE: Final = 3
CUT: Final = 4
"""The game has moves but no result, or ends in a comment or variation."""

# Columns of the state of a scan.
_MODE, _DEPTH, _IN_COMMENT, _HAS_EVENT, _LINE_IS_EMPTY, _AFTER_EMPTY_LINE = 0, 1, 2, 3, 4, 5
_NUM_GAMES, _NUM_WORDS, _STATE_COLUMNS = 6, 7, 8

_BETWEEN, _TAGS, _MOVES = 0, 1, 2
"""Modes: behind a result, among tag pairs, among moves."""

_LF, _CR, _TAB, _SPACE, _FF = 10, 13, 9, 32, 12
_BOM: Final = (0xEF, 0xBB, 0xBF)
_LAST_ASCII: Final = 127
_OPEN_TAG, _OPEN, _CLOSE = ord("["), ord("("), ord(")")
_OPEN_COMMENT, _CLOSE_COMMENT, _REST, _ESCAPE = ord("{"), ord("}"), ord(";"), ord("%")
_NAG, _DOT, _GOOD, _POOR = ord("$"), ord("."), ord("!"), ord("?")


@kernel
def scan(
    text: UInt8Array, games: Int64Array, words: Int32Array, words_at: Int32Array
) -> tuple[int, int]:
    """Find the games of ``text`` uint8[...], which begins at a game or at the file's first byte.

    Args:
        text: PGN; its last game counts as cut unless a result ends it.
        games: int64[..., GAME_COLUMNS], written, a row a game.
        words: int32[...], written: the moves of all games.
        words_at: int32[...], written: the byte each move begins at.

    Returns:
        The numbers of games and of words.
    """
    state = np.zeros(_STATE_COLUMNS, dtype=np.int64)
    state[_LINE_IS_EMPTY] = state[_AFTER_EMPTY_LINE] = 1
    p = int64(0)
    while p < len(text):
        behind = _skip_blank(text, p, state)
        if behind > p:
            p = behind
            continue
        is_first = state[_LINE_IS_EMPTY] == 1
        state[_LINE_IS_EMPTY] = 0
        if text[p] == _OPEN_TAG and _begins_game(text, p, is_first, state):
            _end_game(games, state, p)
            _begin_game(games, state, p)
            state[_MODE] = _TAGS
        if state[_IN_COMMENT]:
            p = _skip_comment(text, p, state)
            continue
        behind = _skip_aside(text, p, state)
        p = behind if behind > p else _read_token(text, p, games, words, words_at, state)
    _end_game(games, state, len(text))
    num_games, num_words = state[_NUM_GAMES], state[_NUM_WORDS]
    games[num_games, START], games[num_games, FIRST_WORD] = len(text), num_words
    return num_games, num_words


@kernel
def _begin_game(games: Int64Array, state: Int64Array, at: int) -> None:
    game = games[state[_NUM_GAMES]]
    game[START] = game[TAGS_END] = game[FAULT_AT] = at
    game[FIRST_WORD], game[RESULT], game[FAULT] = state[_NUM_WORDS], NO_RESULT, NO_FAULT
    state[_NUM_GAMES] += 1
    state[_DEPTH] = state[_IN_COMMENT] = state[_HAS_EVENT] = 0


@kernel
def _end_game(games: Int64Array, state: Int64Array, at: int) -> None:
    """Close the newest game where no result did."""
    is_inside = state[_IN_COMMENT] or state[_DEPTH]
    if state[_MODE] == _MOVES or (state[_MODE] == _TAGS and is_inside):
        _note(games, state, int64(CUT), at)


@kernel
def _note(games: Int64Array, state: Int64Array, fault: int, at: int) -> None:
    """The first fault of the newest game; a game that is cut is nothing else."""
    game = games[state[_NUM_GAMES] - 1]
    if game[FAULT] == NO_FAULT or (fault == CUT and game[FAULT] != BAD_TAG):
        game[FAULT], game[FAULT_AT] = fault, at


@kernel
def _begins_game(text: UInt8Array, at: int, is_first: bool, state: Int64Array) -> bool:
    """Return whether the bracket at ``at`` begins a game; see the rules at the head of the module.

    ``is_first`` says whether it is the first in its line.
    """
    if state[_IN_COMMENT]:
        return bool(is_first and state[_AFTER_EMPTY_LINE] and is_event(text, at))
    if state[_MODE] == _TAGS:
        return bool(is_first and state[_HAS_EVENT] and is_event(text, at))
    return bool(is_first or state[_MODE] == _BETWEEN)


@kernel
def _skip_blank(text: UInt8Array, at: int, state: Int64Array) -> int:
    """Behind a blank, the end of a line, or a byte order mark; ``at`` where there is none."""
    c = byte_at(text, at)
    if c in (_LF, _CR):
        if not (c == _LF and at > 0 and text[at - 1] == _CR):
            state[_AFTER_EMPTY_LINE] = state[_LINE_IS_EMPTY]
            state[_LINE_IS_EMPTY] = 1
        return at + 1
    if c == _SPACE or _TAB <= c <= _FF:
        return at + 1
    if c == _BOM[0] and byte_at(text, at + 1) == _BOM[1] and byte_at(text, at + 2) == _BOM[2]:
        return at + len(_BOM)
    return at


@kernel
def _skip_comment(text: UInt8Array, at: int, state: Int64Array) -> int:
    """Behind the end of a comment, or to the end of the line, whichever is first."""
    while at < len(text) and text[at] not in (_CLOSE_COMMENT, _LF, _CR):
        at += 1
    if byte_at(text, at) == _CLOSE_COMMENT:
        state[_IN_COMMENT] = 0
        at += 1
    return at


@kernel
def _skip_aside(text: UInt8Array, at: int, state: Int64Array) -> int:
    """Over what is not of the main line; ``at`` where nothing of the kind begins."""
    c = byte_at(text, at)
    if c == _OPEN_COMMENT:
        state[_IN_COMMENT] = 1
        return at + 1
    if c == _REST or (c == _ESCAPE and is_in_first_column(text, at)):
        return skip_line(text, at)
    if state[_DEPTH] or c == _OPEN:
        if state[_MODE] == _TAGS:
            state[_MODE] = _MOVES
        state[_DEPTH] += int(c == _OPEN) - int(c == _CLOSE)
        return at + 1
    if c in (_NAG, _DOT, _GOOD, _POOR):
        return skip_number(text, at + 1)
    return at


@kernel
def _read_token(
    text: UInt8Array, at: int, games: Int64Array, words: Int32Array, words_at: Int32Array,
    state: Int64Array,
) -> int:
    """Take in a tag pair, a result, a move number, a sign or a move; where it ends."""
    if state[_MODE] == _TAGS and text[at] == _OPEN_TAG:
        return _read_tag(text, at, games, state)
    result, end = read_result(text, at)
    if result != NO_RESULT:
        if state[_MODE] != _BETWEEN:  # a second result belongs to no game
            games[state[_NUM_GAMES] - 1, RESULT] = result
        state[_MODE] = _BETWEEN
        return end
    is_number = is_move_number(text, at)
    if state[_MODE] == _BETWEEN:
        _begin_game(games, state, at)
        if is_number and not is_number_one(text, at):
            _note(games, state, int64(BAD_WORD), at)  # its beginning is missing
    state[_MODE] = _MOVES
    if is_number:
        return skip_number(text, at)
    if is_sign(text, at):
        return skip_sign(text, at)
    word, end = read_move(text, at)
    if word == UNREADABLE:
        is_ascii = 0 < text[at] <= _LAST_ASCII
        _note(games, state, int64(BAD_WORD if is_ascii else BAD_BYTE), at)
    else:
        num_words = state[_NUM_WORDS]
        words[num_words], words_at[num_words] = word, at
        state[_NUM_WORDS] += 1
    return end


@kernel
def _read_tag(text: UInt8Array, at: int, games: Int64Array, state: Int64Array) -> int:
    if is_event(text, at):
        state[_HAS_EVENT] = 1
    end = skip_tag(text, at)
    if end == NO_TAG:
        _note(games, state, int64(BAD_TAG), at)
        end = skip_line(text, at)
    games[state[_NUM_GAMES] - 1, TAGS_END] = end
    return end
