"""Stored games of chess played again by python-chess, which knows nothing of our rules."""

from collections.abc import Iterator

from chess_snn.data import GameRecords
from chess_snn.games.chess import CHESS_SPEC, move_of_action, to_board

CHECKMATE = CHESS_SPEC.terminations.index("checkmate")
_WINNER_MOVED = {True: -1, False: 1}
"""Outcome by whether white is to move in the mate."""


def illegal_games(records: GameRecords) -> Iterator[str]:
    """What is wrong with each game that the rules do not allow."""
    for game in range(records.num_games):
        fault = _first_fault(records, game)
        if fault is not None:
            yield f"game {game}: {fault}"


def _first_fault(records: GameRecords, game: int) -> str | None:
    first, end = (int(records.game_offsets[game + i]) for i in (0, 1))
    board = to_board(records.states[first])
    for row in range(first, end):
        stored = to_board(records.states[row])
        if stored.epd() != board.epd():
            return f"ply {row - first} is {stored.epd()}, and {board.epd()} by the rules"
        move = move_of_action(board, int(records.actions[row]))
        if not board.is_legal(move):
            return f"{move.uci()} is illegal in {board.fen()}"
        board.push(move)
    mated = records.terminations[game] == CHECKMATE
    if mated != board.is_checkmate():
        return f"a mate on the board: {board.is_checkmate()}, in the record: {mated}"
    if mated and records.outcomes_white[game] != _WINNER_MOVED[board.turn]:
        return f"the mate counts {records.outcomes_white[game]:+d} for white"
    return None
