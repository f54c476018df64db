"""Positions for people: in characters, as tiles in colour, and as SVG."""

from typing import Final

import chess
from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from chess_snn.data import GameRecords
from chess_snn.games.base import Game
from chess_snn.games.chess import move_of_action, to_board
from chess_snn.games.twenty48.layout import BOARD, MAX_EXPONENT, NUM_CELLS, SIDE
from chess_snn.types import UInt64Array

_TILE_WIDTH: Final = 7
"""Characters of a cell: the five digits of the largest tile, and one on either side."""
_DARK, _LIGHT = "#3c3a32", "#f9f6f2"
_TILE_COLOURS: Final = (
    "", "#eee4da", "#ede0c8", "#f2b179", "#f59563", "#f67c5f", "#f65e3b", "#edcf72", "#edcc61",
    "#edc850", "#edc53f", "#edc22e", "#b784ab", "#9a5fa0", "#7a4d9f", "#503b8f",
)
"""Colours by exponent. The original game defines them up to 2048."""
_LIGHT_DIGITS: Final = (5, 6, 12, 13, 14, 15)
"""Exponents of the dark tiles."""


def draw_position(
    game: Game, state: UInt64Array, *, tall: bool = False, ascii_only: bool = False
) -> RenderableType:
    """The position uint64[W] as tiles where the game has them, else in the game's notation.

    ``tall`` takes more lines and is easier to see; ``ascii_only`` draws lines with ``+-|``. For
    chess, :func:`draw_board` also shows the last move.
    """
    if game.spec.name != "2048":
        return game.format_state(state)
    return _draw_tiles(state, tall, ascii_only)


def draw_board(board: chess.Board, bottom: chess.Color, ascii_only: bool) -> str:
    """Eight ranks and the files below them, seen by the side ``bottom``.

    Capital letters are white in ASCII; the last move's origin is marked ``( )``, its target too.
    """
    ranks = range(7, -1, -1) if bottom == chess.WHITE else range(8)
    files = range(8) if bottom == chess.WHITE else range(7, -1, -1)
    last = board.move_stack[-1] if board.move_stack else chess.Move.null()
    marked = {last.from_square, last.to_square} if last else set()
    rows = [
        f"{rank + 1}  " + "".join(
            _square(board, chess.square(file, rank), marked, ascii_only) for file in files
        )
        for rank in ranks
    ]
    return "\n".join([*rows, "   " + "".join(f" {chess.FILE_NAMES[file]} " for file in files)])


def _square(board: chess.Board, square: chess.Square, marked: set[int], ascii_only: bool) -> str:
    piece = board.piece_at(square)
    symbol = "."
    if piece is not None:
        symbol = piece.symbol() if ascii_only else piece.unicode_symbol()
    return f"({symbol})" if square in marked else f" {symbol} "


def _draw_tiles(state: UInt64Array, tall: bool, ascii_only: bool) -> Table:
    """The board of ``state`` uint64[2]; a cell is three lines high if ``tall``, else one."""
    board = int(state[BOARD])
    cells = [
        _tile(board >> 4 * cell & MAX_EXPONENT, tall, ascii_only) for cell in range(NUM_CELLS)
    ]
    grid = Table(
        box=box.ASCII2 if ascii_only else box.ROUNDED, show_header=False, show_lines=True,
        padding=0, border_style="dim",
    )
    for _ in range(SIDE):
        grid.add_column(width=_TILE_WIDTH)
    for first in range(0, NUM_CELLS, SIDE):
        grid.add_row(*cells[first : first + SIDE])
    return grid


def _tile(exponent: int, tall: bool, ascii_only: bool) -> Text:
    if exponent == 0:
        content, style = "." if ascii_only else "·", "dim"
    else:
        content = str(1 << exponent)
        digits = _LIGHT if exponent in _LIGHT_DIGITS else _DARK
        style = f"bold {digits} on {_TILE_COLOURS[exponent]}"
    lines = ["", content, ""] if tall else [content]
    return Text("\n".join(line.center(_TILE_WIDTH) for line in lines), style=style)


def position_of(records: GameRecords, game: int, ply: int) -> chess.Board:
    """The position after ``ply`` plies of a game; its last move is on the stack."""
    first = int(records.game_offsets[game])
    board = to_board(records.states[first + max(0, ply - 1)])
    if ply:
        board.push(move_of_action(board, int(records.actions[first + ply - 1])))
    return board


def board_svg(board: chess.Board) -> str:
    """The board as SVG, the last move marked."""
    import chess.svg  # noqa: PLC0415 - a board in characters need not wait for it

    check = board.king(board.turn) if board.is_check() else None
    return chess.svg.board(board, lastmove=board.peek() if board.move_stack else None, check=check)
