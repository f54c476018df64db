"""Playing whole games of moves that were read, and writing the moves of games that were played."""

from typing import Final

import numpy as np

from chess_snn.games.bits import ZERO
from chess_snn.games.chess.layout import (
    BLACK_BIT,
    FULLMOVE_MASK,
    FULLMOVE_SHIFT,
    HISTORY_LENGTH,
    MAX_LEGAL,
    META,
    ONGOING,
    RECORD_WORDS,
    STATE_WORDS,
)
from chess_snn.games.chess.moves import make_move
from chess_snn.games.chess.san import LONGEST_SAN, find_action, write_san
from chess_snn.games.chess.step import begin, settle
from chess_snn.jit import copy_row, int64, kernel
from chess_snn.types import (
    BoolArray,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)

PLAYED: Final = 0
"""Outcome of a game whose moves are all legal; else ILLEGAL or AMBIGUOUS."""

LINE_LENGTH: Final = 79
"""Bytes of a line, without its end."""
_MOST_NUMBER: Final = 9
"""Bytes of the longest move number, such as ``65535...``, with the separator before it."""
BYTES_A_PLY: Final = LONGEST_SAN + _MOST_NUMBER + 1
"""Most that one ply takes in a movetext."""

_SPACE, _LF, _DOT = np.uint8(ord(" ")), np.uint8(ord("\n")), np.uint8(ord("."))
_CHECK, _MATE, _DIGIT_0 = np.uint8(ord("+")), np.uint8(ord("#")), np.uint8(ord("0"))
_TEN: Final = 10
_NUM_DOTS_BLACK: Final = 3


@kernel
def replay(
    words: Int32Array, first_words: Int64Array, starts: UInt64Array, wanted: BoolArray,
    states: UInt64Array, actions: Int16Array, outcomes: Int32Array, plies: Int32Array,
    terminations: UInt8Array, played_on: BoolArray,
) -> None:
    """Play the wanted ones of n games, a draw by the rules notwithstanding.

    Args:
        words: int32[N], the moves of all games; see :mod:`chess_snn.games.chess.san`.
        first_words: int64[n + 1], where the moves of each game begin and end.
        starts: uint64[n, >= 5], the position each game begins at.
        wanted: bool[n]; of the others only ``plies`` is written, 0.
        states: uint64[N, 5], written: the position before each move.
        actions: int16[N], written: the action each move means.
        outcomes: int32[n], written: PLAYED, ILLEGAL or AMBIGUOUS.
        plies: int32[n], written: how many moves were played, those before a bad one.
        terminations: uint8[n], written: how the game stands by the rules after its last move.
        played_on: bool[n], written: whether it had been over by the rules before that.
    """
    row = np.empty(STATE_WORDS, dtype=np.uint64)
    history = np.empty(HISTORY_LENGTH, dtype=np.uint64)
    legal = np.empty(MAX_LEGAL, dtype=np.int16)
    for g in range(len(wanted)):
        outcomes[g], plies[g], terminations[g], played_on[g] = PLAYED, 0, ONGOING, False
        if not wanted[g]:
            continue
        copy_row(starts[g, :RECORD_WORDS], row)
        num_legal, _, code = begin(row, history, legal)
        for i in range(first_words[g], first_words[g + 1]):
            played_on[g] |= code != ONGOING
            action = find_action(row, legal, int(num_legal), words[i])
            if action < 0:
                outcomes[g] = action
                break
            copy_row(row[:RECORD_WORDS], states[i])
            actions[i] = action
            make_move(row, row, action)
            plies[g] += 1
            num_legal, _, code = settle(row, history, int64(plies[g]), legal)
        terminations[g] = code


@kernel
def write_movetext(
    states: UInt64Array, actions: Int16Array, buffer: UInt8Array
) -> tuple[int, int, bool]:
    """Write one game's moves as PGN, a blank and then lines of at most LINE_LENGTH bytes.

    The moves are played, a draw by the rules notwithstanding, from the first position on; of the
    others nothing is believed.

    Args:
        states: uint64[n, >= 5], the position before each move; the first one is possible.
        actions: int16[n], the moves.
        buffer: uint8[>= n * BYTES_A_PLY], written.

    Returns:
        How many bytes were written; the number of moves, fewer than n where the next one is
        illegal, or is not played where the moves before it lead to; and whether it is.
    """
    row = np.empty(STATE_WORDS, dtype=np.uint64)
    history = np.empty(HISTORY_LENGTH, dtype=np.uint64)
    legal = np.empty(MAX_LEGAL, dtype=np.int16)
    copy_row(states[0, :RECORD_WORDS], row)
    num_legal, in_check, _ = begin(row, history, legal)
    end, line = int64(0), int64(1)
    for i in range(len(actions)):
        if not _is_at(row, states[i]):
            return end, i, False
        is_black = row[META] & BLACK_BIT != ZERO
        if i == 0 or not is_black:
            number = int(row[META] >> FULLMOVE_SHIFT & FULLMOVE_MASK)
            word = _write_number(number, is_black, buffer, end + 1)
            end, line = _end_word(buffer, end, word, line)
        begun = end + 1
        word = write_san(row, legal, int(num_legal), actions[i], buffer, begun)
        if word == begun:
            return end, i, True
        make_move(row, row, actions[i])
        num_legal, in_check, _ = settle(row, history, i + 1, legal)
        if in_check:
            buffer[word] = _MATE if num_legal == ZERO else _CHECK
            word += 1
        end, line = _end_word(buffer, end, word, line)
    return end, len(actions), True


@kernel
def _is_at(row: UInt64Array, state: UInt64Array) -> bool:
    """Return whether ``row`` is the position that was recorded as ``state`` uint64[>= 5]."""
    is_same = True
    for word in range(RECORD_WORDS):
        is_same &= row[word] == state[word]
    return is_same


@kernel
def _write_number(number: int, is_black: bool, buffer: UInt8Array, at: int) -> int:
    """A move number with its dots; where it ends."""
    power = 1
    while power * _TEN <= number:
        power *= _TEN
    while power:
        buffer[at] = _DIGIT_0 + np.uint8(number // power % _TEN)
        power //= _TEN
        at += 1
    for _ in range(_NUM_DOTS_BLACK if is_black else 1):
        buffer[at] = _DOT
        at += 1
    return at


@kernel
def _end_word(buffer: UInt8Array, begun: int, end: int, line: int) -> tuple[int, int]:
    """Put a blank or a line feed before the word written; its end, and where its line begins."""
    if end - line > LINE_LENGTH:
        buffer[begun] = _LF
        return end, begun + 1
    buffer[begun] = _SPACE
    return end, line
