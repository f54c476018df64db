"""Chess as batched kernels over rows of ``uint64``; python-chess only where text comes in."""

from chess_snn.games.chess.game import CHESS_SPEC, ChessGame
from chess_snn.games.chess.notation import (
    action_of_move,
    from_board,
    move_of_action,
    moves_of,
    to_board,
)
from chess_snn.games.chess.perft import perft
from chess_snn.games.chess.planes import PLANE_NAMES
