"""The position that a GUI describes, as a board and as a row for the search.

The rules of the search end a game at the third repetition and at fifty moves; a GUI may let it go
on, because such draws must be claimed. From there the row begins anew, without its past, and with
its clock at 0.
"""

from functools import cached_property
from typing import Final, Self

import chess
import numpy as np

from chess_snn.games.base import Game, GameBatch
from chess_snn.games.chess.notation import action_of_move, from_board, parse_fen, parse_uci

FIFTY_MOVES_CLOCK: Final = 100
"""Halfmove clock at which the rules of the search end a game."""


class Position:
    """A game up to now. ``board`` has its moves; ``root`` is the one row to be searched.

    The row has ended where no search is possible.
    """

    def __init__(self, game: Game, fen: str | None = None) -> None:
        """Start at ``fen``, or at the initial position.

        Raises:
            PositionError: the FEN is malformed or the position cannot occur.
        """
        self.board = chess.Board() if fen is None else parse_fen(fen)
        self._game = game
        self._start = self.board.fen()
        self._actions: list[int] = []
        self._forgotten = 0
        if fen is not None:
            from_board(self.board)  # raises what is wrong with it now

    @classmethod
    def after(cls, game: Game, fen: str | None, moves: tuple[str, ...]) -> Self:
        """The position after ``moves`` in UCI notation.

        Raises:
            PositionError: as above.
            IllegalMoveError: names the first move that is malformed or illegal.
        """
        position = cls(game, fen)
        for move in moves:
            position.push(parse_uci(position.board, move))
        return position

    @property
    def is_searchable(self) -> bool:
        """Return whether the rules of the search go on here."""
        return bool(self.root.num_legal[0])

    def push(self, move: chess.Move) -> None:
        """Play a legal move."""
        action = action_of_move(move, self.board.turn)
        self._game.step(self.root, np.array([action], np.int16))
        self.board.push(move)
        self._actions.append(action)
        if not self.is_searchable:
            self._forgotten = len(self._actions)
            del self.root

    def actions_since(self, earlier: "Position") -> list[int] | None:
        """The actions from ``earlier`` to here; None where this does not continue it."""
        count = len(earlier._actions)
        if (
            earlier._start != self._start
            or count < self._forgotten
            or self._actions[:count] != earlier._actions
        ):
            return None
        return self._actions[count:]

    def any_move(self) -> chess.Move | None:
        """A legal move, the same every time; None where there is none."""
        return next(iter(self.board.legal_moves), None)

    @cached_property
    def root(self) -> GameBatch:
        """The row, made when it is first needed: a GUI that asks for ``uciok`` waits for none."""
        board = self.board.copy(stack=False)
        if board.halfmove_clock >= FIFTY_MOVES_CLOCK:
            board.halfmove_clock = 0
        row = self._game.allocate(1)
        self._game.reset(row, np.zeros(1, np.int64), from_board(board)[None])
        return row
