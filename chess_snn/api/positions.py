"""Positions as users give them: boards of python-chess or texts in, rows for the kernels out.

Dimensions: G positions, W words a state row.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import chess
import numpy as np

from chess_snn.errors import PositionError
from chess_snn.games import GAME_NAMES, get_game
from chess_snn.games.base import NO_ACTION, Game, GameBatch
from chess_snn.games.chess import action_of_move, from_board, move_of_action, moves_of, to_board
from chess_snn.known import START
from chess_snn.types import UInt64Array

Position: TypeAlias = chess.Board | str
"""A board, or a text: a FEN, rows of 2048 such as ``2 . . 4/. . . ./. . . ./. . . 2``, or
``START``."""
Positions: TypeAlias = list[Position] | list[chess.Board] | list[str] | tuple[Position, ...]
"""Several of them: one batch."""
Move: TypeAlias = chess.Move | str
"""A move of chess; in 2048 its name, such as ``left``."""
_CHESS: Final = "chess"
_EXAMPLES: Final = {_CHESS: "a chess.Board or a FEN", "2048": "rows such as '2 . . 4/…'"}


def read_positions(game: Game, positions: Sequence[Position]) -> GameBatch:
    """The positions as a batch of ``game``, in their order.

    A board brings its moves along as far as they matter to repetition. Where the rules of this
    library had ended the game on the way, because a draw could be claimed, the past begins anew.

    Raises:
        PositionError: one is of another game or variant, malformed, impossible, or over; where
            there are several, its number is named.
    """
    batch = GameBatch.empty(game.spec, len(positions))
    lines: list[list[int]] = []
    for row, position in enumerate(positions):
        try:
            state, line = _read(game, position)
        except PositionError as error:
            raise _numbered(error, row, len(positions)) from error
        game.reset(batch, np.array([row]), state[None])
        lines.append(line)
    for ply in range(max(map(len, lines), default=0)):
        actions = np.array([line[ply] if ply < len(line) else NO_ACTION for line in lines],
                           np.int16)
        over = np.flatnonzero((actions != NO_ACTION) & (batch.num_legal == 0))
        game.reset(batch, over, batch.state[over])
        game.step(batch, actions)
    for row in np.flatnonzero(batch.num_legal == 0).tolist():
        ending = game.spec.terminations[batch.termination[row]].replace("_", " ")
        raise _numbered(PositionError(
            f"the game is over in {_text(positions[row])!r} ({ending}); give an earlier position"
        ), row, len(positions))
    return batch


def moves_at(game: Game, state: UInt64Array, actions: Iterable[int]) -> list[Move]:
    """The moves that ``actions``, legal at ``state`` uint64[W], stand for."""
    if game.spec.name != _CHESS:
        return [game.format_action(state, int(action)) for action in actions]
    board = to_board(state)
    return [move_of_action(board, int(action)) for action in actions]


def line_at(game: Game, state: UInt64Array, actions: Sequence[int]) -> tuple[Move, ...]:
    """The moves of a line that begins at ``state`` uint64[W]; without the chance events in it."""
    if game.spec.name != _CHESS:
        return tuple(moves_at(game, state, actions))
    return tuple(moves_of(to_board(state), actions))


def read_state(game: Game, text: str) -> UInt64Array:
    """State row uint64[W] of the position ``text``; the game may be over there.

    Raises:
        PositionError: it is of another game, malformed, or impossible.
    """
    return _read(game, text)[0]


def _read(game: Game, position: Position) -> tuple[UInt64Array, list[int]]:
    """A state row uint64[W] and the actions that lead from there to ``position``."""
    name = game.spec.name
    if isinstance(position, chess.Board):
        if name != _CHESS:
            raise _of_another_game(position, _CHESS, name)
        if position.uci_variant != _CHESS:
            raise PositionError(
                f"{position.fen()!r} is a board of {position.uci_variant}; give a chess.Board"
            )
        start, line = _past(position)
        return from_board(start), line
    if not isinstance(position, str):
        raise PositionError(
            f"{position!r} is of the type {type(position).__name__}; give {_EXAMPLES[name]}"
        )
    if position == START:
        return game.initial_states(np.zeros(1, np.uint64))[0], []
    try:
        state = game.parse_state(position)
    except PositionError:
        for other in GAME_NAMES:
            if other != name and _is_of(other, position):
                raise _of_another_game(position, other, name) from None
        raise
    if game.event_probabilities(state[None]).any():
        raise PositionError(
            f"a chance event is still to come in {position!r}; give a position in which a player "
            "is to move"
        )
    return state, []


def _past(board: chess.Board) -> tuple[chess.Board, list[int]]:
    """The earliest position that ``board`` may repeat, and the actions from there to it."""
    start, line = board.copy(), []
    while start.move_stack and start.halfmove_clock:
        move = start.pop()
        if not move or start.is_castling(move) or not start.is_legal(move):
            start.push(move)
            break
        line.append(action_of_move(move, start.turn))
    return start, line[::-1]


def _is_of(game: str, text: str) -> bool:
    try:
        get_game(game).parse_state(text)
    except PositionError:
        return False
    return True


def _of_another_game(position: Position, found: str, wanted: str) -> PositionError:
    return PositionError(
        f"{_text(position)!r} is a position of {found}, and {wanted} is played here; give "
        f"{_EXAMPLES[wanted]}"
    )


def _numbered(error: PositionError, row: int, count: int) -> PositionError:
    return PositionError(f"position {row} of the list: {error}") if count > 1 else error


def _text(position: Position) -> str:
    return position.fen() if isinstance(position, chess.Board) else position
