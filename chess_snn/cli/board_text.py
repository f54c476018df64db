"""A chess board in characters."""

import chess

_EMPTY = "."


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
            _cell(board, chess.square(file, rank), marked, ascii_only) for file in files
        )
        for rank in ranks
    ]
    return "\n".join([*rows, "   " + "".join(f" {chess.FILE_NAMES[file]} " for file in files)])


def _cell(board: chess.Board, square: chess.Square, marked: set[int], ascii_only: bool) -> str:
    piece = board.piece_at(square)
    symbol = _EMPTY
    if piece is not None:
        symbol = piece.symbol() if ascii_only else piece.unicode_symbol()
    return f"({symbol})" if square in marked else f" {symbol} "
