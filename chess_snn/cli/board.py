"""A position of a recorded game, drawn by python-chess."""

from dataclasses import dataclass
from typing import Final

import chess
import chess.svg

from chess_snn.cli.board_text import draw_board
from chess_snn.data import GameRecords
from chess_snn.errors import UsageError
from chess_snn.games.chess import move_of_action, to_board

_PNG_PIXELS: Final = 480
"""Width and height."""


@dataclass(frozen=True, slots=True)
class ShownPosition:
    """A board and how it came about."""

    board: chess.Board
    ply: int
    num_plies: int
    """Of the whole game."""
    last_move: chess.Move | None


def position_of(records: GameRecords, game: int, ply: int | None) -> ShownPosition:
    """The position after ``ply`` plies of a game, or at its end.

    Raises:
        UsageError: the game has fewer plies.
    """
    first, end = map(int, records.game_offsets[game : game + 2])
    num_plies = end - first
    ply = num_plies if ply is None else ply
    check_ply(ply, num_plies)
    if ply == 0:
        return ShownPosition(to_board(records.states[first]), 0, num_plies, None)
    board = to_board(records.states[first + ply - 1])
    move = move_of_action(board, int(records.actions[first + ply - 1]))
    board.push(move)
    return ShownPosition(board, ply, num_plies, move)


def check_ply(ply: int, num_plies: int) -> None:
    """Refuse a ``ply`` that a game of ``num_plies`` does not have.

    Raises:
        UsageError: it does not.
    """
    if not 0 <= ply <= num_plies:
        raise UsageError(f"--ply must be >= 0 and <= {num_plies} in this game, got {ply}")


def board_text(position: ShownPosition) -> str:
    """The board in letters, white's pieces large, the last move marked, and its FEN."""
    mover = "White" if position.board.turn == chess.WHITE else "Black"
    return "\n".join([
        f"After {position.ply} of {position.num_plies} plies, {mover} to move:", "",
        draw_board(position.board, chess.WHITE, ascii_only=True), "", position.board.fen(),
    ])


def board_svg(position: ShownPosition) -> str:
    """The board as SVG, the last move marked."""
    board = position.board
    check = board.king(board.turn) if board.is_check() else None
    return chess.svg.board(board, lastmove=position.last_move, check=check)


def board_png(position: ShownPosition) -> bytes:
    """The same picture as PNG.

    Raises:
        UsageError: CairoSVG, which is an extra, or the library that it draws with is missing.
    """
    try:
        import cairosvg  # noqa: PLC0415 - it is an extra
    except ImportError as error:
        raise UsageError(
            "--png needs CairoSVG; install it with: pip install 'chess-snn[png]', or use --svg"
        ) from error
    except OSError as error:
        raise UsageError(
            "--png needs the library cairo, which CairoSVG does not find; install it with the "
            "system's packages (apt install libcairo2, dnf install cairo, brew install cairo), or "
            "use --svg"
        ) from error
    picture: bytes = cairosvg.svg2png(
        board_svg(position), output_width=_PNG_PIXELS, output_height=_PNG_PIXELS
    )
    return picture
