"""The batched kernels behind ``step``, ``reset`` and ``legal_actions``: one call a batch.

They say when and why a game ends, too. Draws that a player may claim are claimed at once.

G games, B positions; the arrays are those of :class:`chess_snn.games.base.GameBatch`.
"""

from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO
from chess_snn.games.chess.layout import (
    CHECKMATE,
    CODE0,
    CODE1,
    CODE2,
    EP_MASK,
    EP_SHIFT,
    FIFTY_MOVES,
    FILE_OF_SQUARE,
    HISTORY_LENGTH,
    INSUFFICIENT_MATERIAL,
    KEY,
    META,
    NO_SQUARE,
    ONGOING,
    RECORD_WORDS,
    REPETITIONS_MASK,
    REPETITIONS_SHIFT,
    STALEMATE,
    THREEFOLD_REPETITION,
)
from chess_snn.games.chess.movegen import generate
from chess_snn.games.chess.moves import make_move
from chess_snn.games.chess.rows import compute_key, halfmove_clock, key_without_ep
from chess_snn.games.chess.tables import ZOBRIST_EP_FILE
from chess_snn.jit import copy_row, int64, kernel
from chess_snn.types import (
    Float32Array,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)

_DARK_SQUARES: Final = np.uint64(0xAA55AA55AA55AA55)
_FIFTY_MOVES_CLOCK: Final = np.uint64(100)
_EARLIER_FOR_THREEFOLD: Final = np.uint64(2)
_SHORTEST_REPETITION: Final = np.uint64(4)
_SAME_SIDE: Final = np.uint64(2)
_RING: Final = np.uint64(HISTORY_LENGTH)
_LONGEST_REPETITION: Final = np.uint64(HISTORY_LENGTH - 2)
"""Games end long before the clock is there, but those played elsewhere may go on."""


@kernel
def step_games(
    state: UInt64Array, history: UInt64Array, plies: Int32Array, legal_actions: Int16Array,
    num_legal: Int32Array, termination: UInt8Array, reward: Float32Array, actions: Int16Array,
    num_rows: int,
) -> None:
    """Play the first ``num_rows`` of ``actions`` int16[G], but in ended games and negative ones."""
    for g in range(num_rows):
        if actions[g] < 0 or termination[g] != ONGOING:
            continue
        make_move(state[g], state[g], actions[g])
        plies[g] += 1
        num_moves, _, code = settle(state[g], history[g], int64(plies[g]), legal_actions[g])
        num_legal[g] = int(num_moves) if code == ONGOING else 0
        termination[g] = code
        reward[g] = 1.0 if code == CHECKMATE else 0.0


@kernel
def reset_games(
    state: UInt64Array, history: UInt64Array, plies: Int32Array, legal_actions: Int16Array,
    num_legal: Int32Array, termination: UInt8Array, reward: Float32Array, rows: Int64Array,
    states: UInt64Array,
) -> None:
    """Put ``states`` uint64[n, >= 5] into ``rows`` int64[n] as positions without a past."""
    for i in range(len(rows)):
        g = rows[i]
        copy_row(states[i, :RECORD_WORDS], state[g])
        history[g] = ZERO
        plies[g] = 0
        num_moves, _, code = begin(state[g], history[g], legal_actions[g])
        num_legal[g] = int(num_moves) if code == ONGOING else 0
        termination[g] = code
        reward[g] = 0.0


@kernel
def list_legal(states: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array) -> None:
    """Fill int16[B, 224] and int32[B] from ``states`` uint64[B, >= 5], whether drawn or not."""
    for i in range(len(states)):
        num_moves, _, _ = generate(states[i], legal_actions[i])
        num_legal[i] = num_moves


@kernel
def begin(
    row: UInt64Array, history: UInt64Array, legal: Int16Array
) -> tuple[np.uint64, bool, int]:
    """Make ``row`` uint64[6] a settled position without a past; its KEY is computed anew.

    ``history`` uint64[128], ``legal`` int16[224] and what is returned are those of :func:`settle`.
    """
    row[KEY] = compute_key(row)
    row[KEY] = key_without_ep(row)
    row[META] &= ~(REPETITIONS_MASK << REPETITIONS_SHIFT)
    return settle(row, history, int64(0), legal)


@kernel
def settle(
    row: UInt64Array, history: UInt64Array, plies: int, legal: Int16Array
) -> tuple[np.uint64, bool, int]:
    """Complete a row that :func:`make_move` has just written.

    Drops the en passant square unless a capture there is legal (the KEY of ``row`` comes without
    it), enters the key into the history and counts repetitions.

    Returns:
        The number of legal actions, of a drawn position too; whether the side to move is in check;
        and the termination code.
    """
    num_moves, in_check, ep_is_legal = generate(row, legal)
    ep = row[META] >> EP_SHIFT & EP_MASK
    if ep_is_legal:
        row[KEY] ^= ZOBRIST_EP_FILE[ep & FILE_OF_SQUARE]
    else:
        row[META] ^= (ep ^ NO_SQUARE) << EP_SHIFT
    ply = np.uint64(plies)
    remember(history, ply, row[KEY])
    num_earlier = count_earlier(history, ply, halfmove_clock(row), row[KEY])
    row[META] |= min(num_earlier, REPETITIONS_MASK) << REPETITIONS_SHIFT
    return num_moves, in_check, termination_code(row, num_moves, in_check, num_earlier)


@kernel
def remember(history: UInt64Array, ply: np.uint64, key: np.uint64) -> None:
    """Enter ``key`` into ``history`` uint64[128], the ring that ``GameBatch`` describes."""
    history[ply % _RING] = key


@kernel
def count_earlier(
    history: UInt64Array, ply: np.uint64, clock: np.uint64, key: np.uint64
) -> np.uint64:
    """Count how often ``key`` stands in ``history`` uint64[128] before ``ply``, same side to move.

    Looks back over the plies since the reset, and no further than the last capture or pawn move.
    """
    earlier = ZERO
    distance = _SHORTEST_REPETITION
    farthest = min(clock, ply, _LONGEST_REPETITION)
    while distance <= farthest:
        if history[(ply - distance) % _RING] == key:
            earlier += ONE
        distance += _SAME_SIDE
    return earlier


@kernel
def has_insufficient_material(row: UInt64Array) -> bool:
    """Return whether neither side can mate: bare kings, one minor piece, bishops of one shade."""
    code0, code1, code2 = row[CODE0], row[CODE1], row[CODE2]
    bishops = code0 & code1
    knights = code1 & ~(code0 | code2)
    kings = code1 & code2
    minors = bishops | knights
    if (code0 | code1 | code2) != kings | minors:
        return False
    if minors & (minors - ONE) == ZERO:
        return True
    one_shade = bishops & _DARK_SQUARES == ZERO or bishops & ~_DARK_SQUARES == ZERO
    return bool(knights == ZERO and one_shade)


@kernel
def termination_code(
    row: UInt64Array, num_legal: np.uint64, in_check: bool, num_earlier: np.uint64
) -> int:
    """Index into TERMINATIONS; where several reasons hold, the order is python-chess's."""
    if num_legal == ZERO and in_check:
        return CHECKMATE
    if has_insufficient_material(row):
        return INSUFFICIENT_MATERIAL
    if num_legal == ZERO:
        return STALEMATE
    if halfmove_clock(row) >= _FIFTY_MOVES_CLOCK:
        return FIFTY_MOVES
    if num_earlier >= _EARLIER_FOR_THREEFOLD:
        return THREEFOLD_REPETITION
    return ONGOING
