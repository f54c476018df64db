"""From records to PGN, in the standard's export format, such that it imports to the same games.

What PGN has no word for stands in tags of our own (:mod:`chess_snn.pgn.headers`). Root values and
policy targets are not written.
"""

from collections.abc import Mapping
from typing import Final

import chess
import numpy as np

from chess_snn.data import START_KINDS, GameRecords
from chess_snn.errors import CorruptDataError
from chess_snn.games import ONGOING, get_game
from chess_snn.pgn.headers import (
    CUT_VALUE_TAG,
    PLAIN_START,
    POSITION_START,
    RESULT_TEXTS,
    START_KIND_TAG,
)
from chess_snn.pgn.replay import LINE_LENGTH, OCTETS_A_PLY, write_movetext
from chess_snn.pgn.tokens import BLACK_WON, DRAWN, WHITE_WON
from chess_snn.types import Int16Array, UInt64Array

_RESULTS: Final = {1: WHITE_WON, 0: DRAWN, -1: BLACK_WON}
"""By outcome, white's view."""
_NORMAL, _ADJUDICATED = "normal", "adjudication"


def standard_tags(records: GameRecords, game: int, *, is_cut: bool = False) -> dict[str, str]:
    """What PGN says of the end and the beginning of a game.

    Args:
        records: where it is.
        game: its index there.
        is_cut: whether a game without an end on the board and without a winner was cut by a ply
            cap; else it was agreed upon.
    """
    rows = slice(*records.game_offsets[game : game + 2])
    outcome = int(records.outcomes_white[game])
    was_cut = is_cut and records.terminations[game] == ONGOING and outcome == 0
    fen = get_game("chess").format_state(records.states[rows.start])
    tags = game_tags(outcome, fen, rows.stop - rows.start, is_cut=was_cut)
    start_kind = int(records.start_kinds[game])
    if start_kind != (PLAIN_START if fen == chess.STARTING_FEN else POSITION_START):
        tags[START_KIND_TAG] = START_KINDS[start_kind]
    if records.cut_values_white[game]:
        tags[CUT_VALUE_TAG] = f"{records.cut_values_white[game]:.9g}"
    return tags


def game_tags(outcome_white: int, fen: str, num_plies: int, *, is_cut: bool) -> dict[str, str]:
    """The standard's tags of an end and a beginning.

    Args:
        outcome_white: 1 where white won, 0 drawn or cut, -1 where black won.
        fen: where the game began; left out where that is the initial position.
        num_plies: of the game.
        is_cut: whether a ply cap ended it.
    """
    tags = {
        "Result": RESULT_TEXTS[_RESULTS[outcome_white]],
        "Termination": _ADJUDICATED if is_cut else _NORMAL,
        "PlyCount": str(num_plies),
    }
    return tags if fen == chess.STARTING_FEN else tags | {"SetUp": "1", "FEN": fen}


def format_game(records: GameRecords, game: int, tags: Mapping[str, str]) -> str:
    """One game as PGN, an empty line behind it.

    Args:
        records: where it is.
        game: its index there.
        tags: written in this order; ``Result`` among them ends the movetext.

    Raises:
        CorruptDataError: the record has a move that its position does not allow.
    """
    rows = slice(*records.game_offsets[game : game + 2])
    return format_moves(
        records.states[rows], records.actions[rows], tags, place=f"game {game} of a shard"
    )


def format_moves(
    states: UInt64Array, actions: Int16Array, tags: Mapping[str, str], *, place: str
) -> str:
    """One game as PGN, an empty line behind it.

    Args:
        states: uint64[n, 5], the position before each move.
        actions: int16[n]; n may be 0.
        tags: written in this order; ``Result`` among them ends the movetext.
        place: where the game is, for the error.

    Raises:
        CorruptDataError: a position does not allow its move.
    """
    header = "".join(f'[{name} "{_escape(value)}"]\n' for name, value in tags.items())
    result = tags["Result"]
    if not len(actions):
        return f"{header}\n{result}\n\n"
    buffer = np.empty(len(actions) * OCTETS_A_PLY, dtype=np.uint8)
    length, num_written = write_movetext(
        np.ascontiguousarray(states), np.ascontiguousarray(actions), buffer
    )
    if num_written < len(actions):
        fen = get_game("chess").format_state(states[num_written])
        raise CorruptDataError(
            f"{place} plays action {actions[num_written]} at {fen!r}, where it is illegal; restore "
            "it from a copy"
        )
    moves = buffer[1:length].tobytes().decode("ascii")
    last_line = len(moves) - moves.rfind("\n") - 1
    separator = " " if last_line + 1 + len(result) <= LINE_LENGTH else "\n"
    return f"{header}\n{moves}{separator}{result}\n\n"


def _escape(value: str) -> str:
    r"""A tag's value: the standard puts a backslash before quotes and backslashes."""
    one_line = "".join(c if c.isprintable() else "?" for c in value)
    return one_line.replace("\\", r"\\").replace('"', r"\"")
