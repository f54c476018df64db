"""Chess behind the :class:`chess_snn.games.base.Game` protocol."""

from functools import cache
from typing import Final

import chess
import numpy as np

from chess_snn.games.base import Game, GameBatch, GameSpec, ValueKind
from chess_snn.games.bits import ZERO
from chess_snn.games.chess import actions as chess_actions
from chess_snn.games.chess.actions import MIRRORED_ACTION
from chess_snn.games.chess.layout import (
    BLACK_BIT,
    CASTLING_MASK,
    CASTLING_SHIFT,
    CODE0,
    CODE1,
    CODE2,
    EP_MASK,
    EP_SHIFT,
    HISTORY_LENGTH,
    HORIZONTAL_FLIP,
    KEY,
    MAX_LEGAL,
    META,
    NO_SQUARE,
    RECORD_WORDS,
    STATE_WORDS,
    TERMINATIONS,
    WHITE,
)
from chess_snn.games.chess.mates import find_mates
from chess_snn.games.chess.notation import (
    action_of_move,
    from_board,
    move_of_action,
    parse_fen,
    parse_uci,
    to_board,
)
from chess_snn.games.chess.planes import NUM_RULE_PLANES, PLANE_NAMES, write_material, write_planes
from chess_snn.games.chess.practice import write_practice_states
from chess_snn.games.chess.rows import compute_key
from chess_snn.games.chess.step import list_legal, reset_games, step_games
from chess_snn.jit import kernel
from chess_snn.types import (
    Float32Array,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)

CHESS_SPEC: Final = GameSpec(
    name="chess",
    num_actions=chess_actions.NUM_ACTIONS,
    policy_steps=chess_actions.PLANE_STEPS,
    num_planes=len(PLANE_NAMES) - NUM_RULE_PLANES,
    board_shape=(8, 8),
    state_words=STATE_WORDS,
    record_words=RECORD_WORDS,
    history_length=HISTORY_LENGTH,
    history_word=KEY,
    max_legal=MAX_LEGAL,
    num_players=2,
    value_kind=ValueKind.WDL,
    terminations=TERMINATIONS,
    num_symmetries=2,
    typical_plies=105,
    num_rule_planes=NUM_RULE_PLANES,
)


@cache
def _initial_state() -> UInt64Array:
    """uint64[6], the same array every time; not at import, for it takes a compiled kernel."""
    return from_board(chess.Board())


class ChessGame(Game):
    """Chess; state rows are described in :mod:`chess_snn.games.chess.layout`.

    Checkmate rewards the mover with 1. Fifty moves, threefold repetition and insufficient material
    end a game at once, without a claim. An ended game has no legal actions.
    """

    spec: Final = CHESS_SPEC

    def initial_states(self, seeds: UInt64Array) -> UInt64Array:
        """uint64[G, 6]: the initial position, whatever ``seeds`` uint64[G] hold."""
        return np.tile(_initial_state(), (len(seeds), 1))

    def reset(self, batch: GameBatch, rows: Int64Array, states: UInt64Array) -> None:
        """Put ``states`` uint64[n, >= 5] into ``rows`` int64[n], without any earlier history.

        Keys are computed anew and repetition counts start again at 0. A state may be over at
        once, e.g. by its clock.
        """
        reset_games(
            batch.state, batch.history, batch.ply, batch.legal_actions, batch.num_legal,
            batch.termination, batch.reward, np.asarray(rows, dtype=np.int64),
            np.ascontiguousarray(states),
        )

    def step(
        self, batch: GameBatch, actions: Int16Array, chance: UInt64Array | None = None,
        num_rows: int | None = None,
    ) -> None:
        """Play legal ``actions`` int16[G], in the first ``num_rows`` rows; no use of ``chance``."""
        step_games(
            batch.state, batch.history, batch.ply, batch.legal_actions, batch.num_legal,
            batch.termination, batch.reward, np.ascontiguousarray(actions, dtype=np.int16),
            len(batch) if num_rows is None else num_rows,
        )

    def legal_actions(self, states: UInt64Array) -> tuple[Int16Array, Int32Array]:
        """Legal lists int16[B, 224], 0 behind them, and counts int32[B] of ``states``.

        ``states`` is uint64[B, >= 5]. Draws do not count here: a drawn position has its moves.
        """
        legal_actions = np.zeros((len(states), MAX_LEGAL), dtype=np.int16)
        num_legal = np.empty(len(states), dtype=np.int32)
        list_legal(np.ascontiguousarray(states), legal_actions, num_legal)
        return legal_actions, num_legal

    def winning_actions(
        self, states: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Int16Array:
        """int16[B]: an action that mates in ``states`` uint64[B, 6], NO_ACTION where none does."""
        mates = np.empty(len(states), dtype=np.int16)
        find_mates(states, legal_actions, num_legal, mates)
        return mates

    def planes(self, states: UInt64Array) -> UInt64Array:
        """Bitplanes uint64[B, 48] of ``states`` uint64[B, >= 5]; see ``PLANE_NAMES``."""
        planes = np.empty((len(states), len(PLANE_NAMES)), dtype=np.uint64)
        write_planes(np.ascontiguousarray(states), planes)
        return planes

    def side_to_move(self, states: UInt64Array) -> UInt8Array:
        """uint8[B]: 0 where white is to move, 1 where black is, of ``states`` uint64[B, >= 5]."""
        return (states[:, META] & BLACK_BIT).astype(np.uint8)

    def practice_states(self, seeds: UInt64Array) -> UInt64Array:
        """Rows uint64[n, 6] of won endings against a bare king, one of each of ``seeds`` uint64[n].

        See :mod:`chess_snn.games.chess.practice` for which.
        """
        states = np.empty((len(seeds), STATE_WORDS), dtype=np.uint64)
        write_practice_states(np.ascontiguousarray(seeds, dtype=np.uint64), states)
        return states

    def transform(
        self, states: UInt64Array, actions: Int16Array, symmetries: UInt8Array
    ) -> tuple[UInt64Array, Int16Array]:
        """Copies of ``states`` uint64[B, >= 5] and ``actions`` int16[B, K]; 1 swaps files a and h.

        A row with a castling right left comes back as it was. Negative actions stay as they are.
        """
        states = np.array(states, dtype=np.uint64, order="C")
        actions = np.array(actions, dtype=np.int16, order="C")
        mirror_rows(states, actions, symmetries)
        return states, actions

    def heuristic_stm(self, states: UInt64Array) -> Float32Array:
        """float32[B]: material balance in pawns (1, 3, 3, 5, 9), side to move's view."""
        material = np.empty(len(states), dtype=np.float32)
        write_material(np.ascontiguousarray(states), material)
        return material

    def parse_state(self, text: str) -> UInt64Array:
        """State row uint64[6] of a FEN.

        Raises:
            PositionError: the FEN is malformed or the position cannot occur.
        """
        return from_board(parse_fen(text))

    def format_state(self, state: UInt64Array) -> str:
        """FEN of ``state`` uint64[>= 5]; names an en passant square only if a capture is legal."""
        return to_board(state).fen()

    def parse_action(self, state: UInt64Array, text: str) -> int:
        """Action of a move in UCI, such as ``e2e4`` or ``a7a8q``, at ``state`` uint64[6].

        Raises:
            IllegalMoveError: the move is malformed or not legal there.
        """
        board = to_board(state)
        return action_of_move(parse_uci(board, text), board.turn)

    def format_action(self, state: UInt64Array, action: int) -> str:
        """A legal action at ``state`` uint64[6] in UCI."""
        return move_of_action(to_board(state), action).uci()


_SHIFT_1, _SHIFT_2, _SHIFT_4 = np.uint64(1), np.uint64(2), np.uint64(4)
_EVEN_FILES: Final = np.uint64(0x5555555555555555)
_EVEN_PAIRS: Final = np.uint64(0x3333333333333333)
_QUEEN_SIDE: Final = np.uint64(0x0F0F0F0F0F0F0F0F)


@kernel
def mirror_rows(states: UInt64Array, actions: Int16Array, is_mirrored: UInt8Array) -> None:
    """Swap the a-file with the h-file in chosen rows, and the b-file with the g-file, and so on.

    Castling is the only rule that knows left from right: without castling rights the mirrored game
    is the same game, so training may look at either. Colours and ranks stay as they are.

    Rows of ``states`` uint64[B, >= 5] and ``actions`` int16[B, K] change in place;
    ``is_mirrored`` uint8[B] chooses them. Rows with castling rights stay as they are, and negative
    actions do. The keys of settled rows that carry one become those of the mirrored positions.
    """
    for i in range(len(states)):
        row = states[i]
        if not is_mirrored[i] or row[META] >> CASTLING_SHIFT & CASTLING_MASK != ZERO:
            continue
        for word in (CODE0, CODE1, CODE2, WHITE):
            row[word] = mirror_squares(row[word])
        if row[META] >> EP_SHIFT & EP_MASK != NO_SQUARE:
            row[META] ^= HORIZONTAL_FLIP << EP_SHIFT
        if len(row) > KEY:
            row[KEY] = compute_key(row)
        for j in range(actions.shape[1]):
            if actions[i, j] >= 0:
                actions[i, j] = MIRRORED_ACTION[actions[i, j]]


@kernel
def mirror_squares(squares: np.uint64) -> np.uint64:
    """A set of squares with the order of its files reversed."""
    squares = (squares >> _SHIFT_1) & _EVEN_FILES | (squares & _EVEN_FILES) << _SHIFT_1
    squares = (squares >> _SHIFT_2) & _EVEN_PAIRS | (squares & _EVEN_PAIRS) << _SHIFT_2
    return (squares >> _SHIFT_4) & _QUEEN_SIDE | (squares & _QUEEN_SIDE) << _SHIFT_4
