"""FEN and UCI in and out, and boards of python-chess, which knows both notations."""

from collections.abc import Iterable
from typing import Final

import chess
import numpy as np

from chess_snn.errors import IllegalMoveError, PositionError
from chess_snn.games.chess.actions import (
    ACTION_OF,
    DECODED_ACTION,
    FIRST_UNDERPROMOTION_PLANE,
    NUM_ACTIONS,
    NUM_PLANES,
    OFF_BOARD,
    ORIGIN_MASK,
    TARGET_MASK,
    TARGET_SHIFT,
    UNDERPROMOTION_SHIFT,
)
from chess_snn.games.chess.layout import (
    BLACK_BIT,
    CASTLING_SHIFT,
    CLOCK_MASK,
    CLOCK_SHIFT,
    CODE0,
    CODE1,
    CODE2,
    EP_MASK,
    EP_SHIFT,
    FULLMOVE_MASK,
    FULLMOVE_SHIFT,
    KEY,
    META,
    NO_SQUARE,
    STATE_WORDS,
    VERTICAL_FLIP,
    WHITE,
)
from chess_snn.games.chess.rows import compute_key
from chess_snn.types import UInt64Array

_RIGHTS: Final = (chess.BB_H1, chess.BB_A1, chess.BB_H8, chess.BB_A8)
"""The rook's square of each castling right, in the order of META's bits."""
_FIRST_ARMY: Final = ((chess.KNIGHT, 2), (chess.BISHOP, 2), (chess.ROOK, 2), (chess.QUEEN, 1))
_NUM_PAWNS: Final = 8


def parse_fen(fen: str) -> chess.Board:
    """The board that a FEN describes, possible or not; :func:`from_board` checks that.

    Raises:
        PositionError: the FEN is malformed.
    """
    try:
        return chess.Board(fen.strip())
    except ValueError as error:
        raise PositionError(f"not a FEN: {fen!r} ({error})") from error


def _check(board: chess.Board) -> None:
    """Raise PositionError unless a state row can hold ``board`` and the rules apply to it."""
    fen = board.fen()
    status = board.status()
    if status != chess.STATUS_VALID:
        raise PositionError(f"impossible position {fen!r}: {_status_names(status)}")
    for color in chess.COLORS:
        _check_promotions(board, color, fen)
    if board.halfmove_clock > CLOCK_MASK:
        raise PositionError(
            f"halfmove clock of {fen!r} must be <= {CLOCK_MASK}, got {board.halfmove_clock}"
        )
    if board.fullmove_number > FULLMOVE_MASK:
        raise PositionError(
            f"move number of {fen!r} must be <= {FULLMOVE_MASK}, got {board.fullmove_number}"
        )


def _check_promotions(board: chess.Board, color: chess.Color, fen: str) -> None:
    """Without this bound a position may have more legal moves than a legal list has room for."""
    promoted = sum(
        max(0, len(board.pieces(piece, color)) - at_start) for piece, at_start in _FIRST_ARMY
    )
    missing = _NUM_PAWNS - len(board.pieces(chess.PAWN, color))
    if promoted > missing:
        raise PositionError(
            f"impossible position {fen!r}: {chess.COLOR_NAMES[color]} has {promoted} promoted "
            f"pieces and only {missing} pawns missing"
        )


def _status_names(status: chess.Status) -> str:
    names = [flag.name for flag in chess.Status if flag and flag in status and flag.name]
    return ", ".join(name.lower().replace("_", " ") for name in names)


def from_board(board: chess.Board) -> UInt64Array:
    """State row uint64[6] of ``board``; its move stack is left out, so repetitions are 0.

    Raises:
        PositionError: the position cannot occur (castling rights of Chess960 included), or its
            counters do not fit.
    """
    board = board.copy(stack=False)
    # Marks of other variants, which would bend python-chess's idea of a possible position.
    board.chess960, board.promoted = False, chess.BB_EMPTY
    _check(board)
    ep = board.ep_square if board.has_legal_en_passant() else None
    rights = sum(bool(board.castling_rights & rook) << bit for bit, rook in enumerate(_RIGHTS))
    row = np.zeros(STATE_WORDS, dtype=np.uint64)
    row[CODE0] = board.pawns | board.bishops | board.queens
    row[CODE1] = board.knights | board.bishops | board.kings
    row[CODE2] = board.rooks | board.queens | board.kings
    row[WHITE] = board.occupied_co[chess.WHITE]
    row[META] = (
        int(board.turn == chess.BLACK)
        | rights << int(CASTLING_SHIFT)
        | (int(NO_SQUARE) if ep is None else ep) << int(EP_SHIFT)
        | board.halfmove_clock << int(CLOCK_SHIFT)
        | board.fullmove_number << int(FULLMOVE_SHIFT)
    )
    row[KEY] = compute_key(row)
    return row


def to_board(state: UInt64Array) -> chess.Board:
    """The board of a state row uint64[>= 5], with an empty move stack."""
    code0, code1, code2 = int(state[CODE0]), int(state[CODE1]), int(state[CODE2])
    meta = int(state[META])
    board = chess.Board(None)
    board.pawns = code0 & ~(code1 | code2)
    board.knights = code1 & ~(code0 | code2)
    board.bishops = code0 & code1
    board.rooks = code2 & ~(code0 | code1)
    board.queens = code0 & code2
    board.kings = code1 & code2
    board.occupied = code0 | code1 | code2
    board.occupied_co[chess.WHITE] = int(state[WHITE])
    board.occupied_co[chess.BLACK] = board.occupied ^ int(state[WHITE])
    board.turn = chess.BLACK if meta & int(BLACK_BIT) else chess.WHITE
    rights = meta >> int(CASTLING_SHIFT)
    board.castling_rights = sum(rook for bit, rook in enumerate(_RIGHTS) if rights >> bit & 1)
    ep = meta >> int(EP_SHIFT) & int(EP_MASK)
    board.ep_square = None if ep == NO_SQUARE else ep
    board.halfmove_clock = meta >> int(CLOCK_SHIFT) & int(CLOCK_MASK)
    board.fullmove_number = meta >> int(FULLMOVE_SHIFT) & int(FULLMOVE_MASK)
    return board


def action_of_move(move: chess.Move, turn: chess.Color) -> int:
    """Action of a legal ``move`` by ``turn``."""
    flip = 0 if turn == chess.WHITE else int(VERTICAL_FLIP)
    origin, target = move.from_square ^ flip, move.to_square ^ flip
    if move.promotion in (None, chess.QUEEN):
        return int(ACTION_OF[origin, target])
    file_step = chess.square_file(target) - chess.square_file(origin)
    plane = FIRST_UNDERPROMOTION_PLANE + 3 * (move.promotion - chess.KNIGHT) + file_step + 1
    return origin * NUM_PLANES + plane


def move_of_action(board: chess.Board, action: int) -> chess.Move:
    """The move that ``action`` means on ``board``; legal if the action is.

    Raises:
        IllegalMoveError: no piece on any board moves so.
    """
    decoded = int(DECODED_ACTION[action]) if 0 <= action < NUM_ACTIONS else OFF_BOARD
    if decoded == OFF_BOARD:
        raise IllegalMoveError(f"action {action} is not a move on any board, in {board.fen()!r}")
    flip = 0 if board.turn == chess.WHITE else int(VERTICAL_FLIP)
    origin = decoded & int(ORIGIN_MASK)
    target = decoded >> int(TARGET_SHIFT) & int(TARGET_MASK)
    promotion = decoded >> int(UNDERPROMOTION_SHIFT) or None
    reaches_last_rank = chess.square_rank(target) == chess.square_rank(chess.A8)
    if promotion is None and reaches_last_rank and board.pawns >> (origin ^ flip) & 1:
        promotion = chess.QUEEN
    return chess.Move(origin ^ flip, target ^ flip, promotion)


def moves_of(board: chess.Board, actions: Iterable[int]) -> list[chess.Move]:
    """The moves of a line that begins at ``board``, each action as its mover sees it.

    Raises:
        IllegalMoveError: as :func:`move_of_action`.
    """
    board, moves = board.copy(stack=False), []
    for action in actions:
        moves.append(move_of_action(board, action))
        board.push(moves[-1])
    return moves


def parse_uci(board: chess.Board, text: str) -> chess.Move:
    """The legal move on ``board`` that ``text`` names in UCI notation.

    Raises:
        IllegalMoveError: ``text`` is not UCI, or the move is not legal on ``board``.
    """
    try:
        move = board.parse_uci(text.strip())
    except ValueError as error:
        raise IllegalMoveError(f"move {text!r} is illegal in {board.fen()!r}") from error
    if not move:  # python-chess lets the null move pass
        raise IllegalMoveError(f"move {text!r} is illegal in {board.fen()!r}")
    return move
