"""Writing records as PGN, in the standard's export format, which imports to the same games.

Our own tags say what PGN has no word for (:mod:`chess_snn.pgn.tokens`). Root values and
policy targets are not written.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import chess
import numpy as np

from chess_snn.data import START_KINDS, GameRecords
from chess_snn.data.audit import start_fault
from chess_snn.errors import CorruptDataError
from chess_snn.games import ONGOING, get_game
from chess_snn.pgn.replay import BYTES_A_PLY, LINE_LENGTH, write_movetext
from chess_snn.pgn.tokens import (
    BLACK_WON,
    DRAWN,
    PLAIN_START,
    POSITION_START,
    RESULT_TEXTS,
    START_KIND_TAG,
    TRUNCATED_VALUE_TAG,
    WHITE_WON,
)
from chess_snn.types import Int16Array, UInt64Array

_RESULTS: Final = {1: WHITE_WON, 0: DRAWN, -1: BLACK_WON}
"""Result by outcome, white's view."""
_KEPT_STARTS: Final = 1024
"""First positions that are known to be possible; few games begin elsewhere."""
_NORMAL, _ADJUDICATED = "normal", "adjudication"


def standard_tags(records: GameRecords, game: int, *, is_cut: bool = False) -> dict[str, str]:
    """Return what PGN says of the end and the beginning of a game.

    Args:
        records: where it is.
        game: its index there.
        is_cut: whether a game without an end on the board and without a winner reached the ply
            limit; else it was agreed upon.

    Raises:
        CorruptDataError: the game begins at no possible position.
    """
    rows = slice(*records.game_offsets[game : game + 2])
    outcome = int(records.outcomes_white[game])
    was_cut = is_cut and records.terminations[game] == ONGOING and outcome == 0
    fen = _start_fen(records.states[rows.start], _place(game))
    tags = game_tags(outcome, fen, rows.stop - rows.start, is_cut=was_cut)
    start_kind = int(records.start_kinds[game])
    if start_kind != (PLAIN_START if fen == chess.STARTING_FEN else POSITION_START):
        tags[START_KIND_TAG] = START_KINDS[start_kind]
    if records.cut_values_white[game]:
        tags[TRUNCATED_VALUE_TAG] = f"{records.cut_values_white[game]:.9g}"
    return tags


def game_tags(outcome_white: int, fen: str, num_plies: int, *, is_cut: bool) -> dict[str, str]:
    """The standard's tags of an end and a beginning.

    Args:
        outcome_white: 1 where white won, 0 drawn or truncated, -1 where black won.
        fen: where the game began; left out where that is the initial position.
        num_plies: of the game.
        is_cut: whether it was truncated.
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
        CorruptDataError: the record cannot have been played; see :func:`format_moves`.
    """
    rows = slice(*records.game_offsets[game : game + 2])
    return format_moves(records.states[rows], records.actions[rows], tags, place=_place(game))


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
        CorruptDataError: the first position is impossible, a later one is not the one that the
            moves lead to, or a move is illegal.
    """
    header = "".join(f'[{name} "{_escape(value)}"]\n' for name, value in tags.items())
    result = tags["Result"]
    if not len(actions):
        return f"{header}\n{result}\n\n"
    _start_fen(states[0], place)
    buffer = np.empty(len(actions) * BYTES_A_PLY, dtype=np.uint8)
    length, num_written, is_led_to = write_movetext(
        np.ascontiguousarray(states), np.ascontiguousarray(actions), buffer
    )
    if not is_led_to:
        raise CorruptDataError(
            f"{place}: the position at ply {num_written} is not the one that its moves lead to; "
            "restore it from a copy"
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


def _place(game: int) -> str:
    return f"game {game} of a shard"


def _start_fen(state: UInt64Array, place: str) -> str:
    """FEN of the position that a game begins at.

    Raises:
        CorruptDataError: it is none.
    """
    try:
        return _checked_fen(state.tobytes())
    except ValueError as error:
        raise CorruptDataError(f"{place}: {error}; restore it from a copy") from error


@lru_cache(_KEPT_STARTS)
def _checked_fen(words: bytes) -> str:
    """FEN of a row's bytes; raises ValueError where nothing begins there."""
    game, state = get_game("chess"), np.frombuffer(words, np.uint64)
    if (fault := start_fault(game, state)) is not None:
        raise ValueError(fault)
    return game.format_state(state)


def _escape(value: str) -> str:
    r"""A tag's value: the standard puts a backslash before quotes and backslashes."""
    one_line = "".join(c if c.isprintable() else "?" for c in value)
    return one_line.replace("\\", r"\\").replace('"', r"\"")
