"""Lines of a search for the GUI: ``info``, ``bestmove``, and values as chess programs show them."""

import math
from collections.abc import Sequence
from typing import Final

import chess

from chess_snn.games.chess import moves_of
from chess_snn.search import GrowingTree, Line

_PAWN: Final = 90.0
_STEEPNESS: Final = 1.5637541897
"""Slope of Leela Chess Zero's map from value to centipawns, so that numbers compare with its."""
NO_MOVE = "bestmove (none)"


def centipawns(value_stm: float) -> int:
    """90 tan(1.5637541897 v): rising in v, 0 at 0, about 50 at 1/3 and 12,780 at 1."""
    value = min(1.0, max(-1.0, value_stm))
    return round(_PAWN * math.tan(_STEEPNESS * value))


def moves_to_mate(win_plies: int) -> int:
    """Moves of the winner, negative where the side to move is mated; see ``Line.win_plies``."""
    moves = (abs(win_plies) + 1) // 2
    return moves if win_plies > 0 else -moves


def wdl_per_mille(value_stm: float, draw_share: float) -> tuple[int, int, int]:
    """Win, draw and loss, in 1/1000, that sum to 1000 and differ by the value.

    A tree knows values alone. ``draw_share`` in [0, 1] is what the network says of the position,
    and gives way where the value leaves less room for draws.
    """
    value = min(1.0, max(-1.0, value_stm))
    draw = round(1000 * min(draw_share, 1 - abs(value)))
    win = min(1000 - draw, max(0, round((1000 - draw + 1000 * value) / 2)))
    return win, draw, 1000 - draw - win


def info_lines(
    board: chess.Board, tree: GrowingTree, lines: Sequence[Line], *, simulations: int,
    seconds: float, show_wdl: bool,
) -> list[str]:
    """One ``info`` a line, the best first.

    ``depth`` is the length of the line and ``seldepth`` that of the longest path in the tree.

    Args:
        board: the tree's root.
        tree: it.
        lines: of it; lines without a visit are left out, but for the first.
        simulations: of this search.
        seconds: since it began.
        show_wdl: whether win, draw and loss are printed.
    """
    milliseconds = round(1000 * seconds)
    speed = round(simulations / seconds) if seconds > 0 else 0
    draw_share = float(tree.root_wdl_stm[1])
    shown = [line for i, line in enumerate(lines) if i == 0 or line.visits > 0]
    return [
        f"info depth {len(line.actions)} seldepth {max(tree.height, len(line.actions))} "
        f"multipv {number} {_score(line, draw_share, show_wdl)} nodes {simulations} nps {speed} "
        f"time {milliseconds} pv {' '.join(move.uci() for move in moves_of(board, line.actions))}"
        for number, line in enumerate(shown, start=1)
    ]


def best_move(board: chess.Board, line: Line) -> str:
    """``bestmove`` with the answer that is expected, where one is known."""
    played, *expected = moves_of(board, line.actions)[:2]
    answer = f" ponder {expected[0].uci()}" if expected else ""
    return f"bestmove {played.uci()}{answer}"


def _score(line: Line, draw_share: float, show_wdl: bool) -> str:
    value = line.value_stm
    if line.win_plies:
        value = 1.0 if line.win_plies > 0 else -1.0
        text = f"score mate {moves_to_mate(line.win_plies)}"
    else:
        text = f"score cp {centipawns(value)}"
    if not show_wdl:
        return text
    return " ".join([text, "wdl", *map(str, wdl_per_mille(value, draw_share))])
