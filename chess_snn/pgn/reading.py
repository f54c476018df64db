"""Reading a piece of a PGN file: records of the good games, and why the others are not.

A record of an imported game has the played move as its policy target and the result as its value.
Its termination is what the rules say of the final position; where they say nothing, or that a draw
could be claimed in a game that was won, the game was resigned, adjudicated or agreed upon, and the
termination is ``ONGOING``, as in games that were resigned or cut.

Dimensions: n games found, N their moves, m games imported.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from chess_snn.data import GameRecords
from chess_snn.data.records import offsets
from chess_snn.errors import PositionError
from chess_snn.games import ONGOING, get_game
from chess_snn.games.chess.layout import (
    CHECKMATE,
    INSUFFICIENT_MATERIAL,
    RECORD_WORDS,
    STALEMATE,
    STATE_WORDS,
)
from chess_snn.games.chess.san import AMBIGUOUS
from chess_snn.pgn.replay import PLAYED, replay
from chess_snn.pgn.report import BadGame, ImportReport, RefusedGameError
from chess_snn.pgn.scan import (
    BAD_BYTE,
    BAD_TAG,
    BAD_WORD,
    CUT,
    FAULT,
    FAULT_AT,
    FIRST_WORD,
    GAME_COLUMNS,
    NO_FAULT,
    RESULT,
    START,
    TAGS_END,
    scan,
)
from chess_snn.pgn.selection import LIMIT
from chess_snn.pgn.tokens import DRAWN, RESULT_TEXTS, UNKNOWN_RESULT, Header, parse_header
from chess_snn.types import (
    BoolArray,
    Int8Array,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)

_SCAN_FAULTS: Final = {
    BAD_TAG: "bad_header", BAD_WORD: "unreadable_move", BAD_BYTE: "wrong_encoding",
    CUT: "truncated",
}
_FINAL_POSITIONS: Final = (CHECKMATE, STALEMATE, INSUFFICIENT_MATERIAL)
"""Ends that need no claim: a result that contradicts one is wrong."""
_LONGEST_TOKEN: Final = 60
"""Bytes to look for one in."""


@dataclass(frozen=True, slots=True)
class _Replayed:
    """All moves of a text, played."""

    states: UInt64Array
    """uint64[N, 5]; undefined where a game was not played so far, as ``actions``."""
    actions: Int16Array
    """int16[N]."""
    outcomes: Int32Array
    """int32[n]: PLAYED, ILLEGAL or AMBIGUOUS."""
    plies: Int32Array
    """int32[n]: moves that were played."""
    terminations: UInt8Array
    """uint8[n]: how the rules see the last position."""
    played_on: BoolArray
    """bool[n]: it had been over before."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Findings of a scan."""

    text: bytes
    games: Int64Array
    """int64[n + 1, GAME_COLUMNS]; the last row is the end."""
    words: Int32Array
    """int32[N]."""
    words_at: Int32Array
    """int32[N]."""

    @property
    def num_games(self) -> int:
        return len(self.games) - 1


def read_games(
    text: bytes, numbers: Sequence[int] = (1,), most: int | None = None
) -> tuple[GameRecords | None, ImportReport]:
    """The good games of ``text``, in order, and what became of every game.

    Args:
        text: PGN that begins at the beginning of a game.
        numbers: of its games in the file, from 1; beyond the end they go on from the last.
        most: good games to take at most; others count under ``LIMIT``.

    Returns:
        Records, None where no game is good; and the report.
    """
    found = _scan(text)
    n = found.num_games
    headers: dict[int, Header] = {}
    starts = np.zeros((n, STATE_WORDS), dtype=np.uint64)
    bad: dict[int, BadGame] = {}
    for k in range(n):
        try:
            headers[k] = _check_before_play(found, k)
            starts[k] = _start(headers[k])
        except RefusedGameError as refused:
            bad[k] = refused.of_game(_number_of(numbers, k))
    wanted = np.array([k not in bad for k in range(n)], dtype=np.bool_)
    played = _replay(found, starts, wanted)
    # Results in order: WHITE_WON, DRAWN, BLACK_WON.
    outcomes_white: Int8Array = (DRAWN - found.games[:-1, RESULT]).astype(np.int8)
    for k in map(int, np.flatnonzero(wanted)):
        try:
            _check_after_play(found, played, k, int(outcomes_white[k]))
        except RefusedGameError as refused:
            bad[k] = refused.of_game(_number_of(numbers, k))
    is_good = np.array([k not in bad for k in range(n)], dtype=np.bool_)
    is_taken = is_good & (np.cumsum(is_good) <= (n if most is None else most))
    report = ImportReport(games_read=n, games=int(is_taken.sum()))
    if left := int(is_good.sum()) - report.games:
        report.left_out[LIMIT] = left
    for k in sorted(bad):
        report.refuse(bad[k])
    if not is_taken.any():
        return None, report
    good_headers = [header for k, header in headers.items() if is_taken[k]]
    report.latin1_headers = sum(header.is_latin1 for header in good_headers)
    report.played_on = int(np.count_nonzero(played.played_on & is_taken))
    records = _records(played, found.games[:, FIRST_WORD], is_taken, outcomes_white, good_headers)
    report.positions = records.num_positions
    return records, report


@dataclass(frozen=True, slots=True)
class FoundGame:
    """A game of a text: where it begins, its tag pairs, and its result."""

    start: int
    tags: bytes
    result: int


def find_games(text: bytes) -> list[FoundGame]:
    """The games of ``text``, which begins at a game or at the file."""
    return [
        FoundGame(start, text[start:end], result)
        for start, end, result in _scan(text).games[:-1, [START, TAGS_END, RESULT]].tolist()
    ]


def _number_of(numbers: Sequence[int], k: int) -> int:
    return numbers[k] if k < len(numbers) else numbers[-1] + k + 1 - len(numbers)


def _scan(text: bytes) -> _Found:
    # Room for whatever the text may hold: the system backs what is written, and copies are kept.
    most = len(text) // 2 + 2
    games = np.empty((most, GAME_COLUMNS), dtype=np.int64)
    words, words_at = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
    num_games, num_words = scan(np.frombuffer(text, dtype=np.uint8), games, words, words_at)
    return _Found(
        text, games[: num_games + 1].copy(), words[:num_words].copy(), words_at[:num_words].copy()
    )


def _check_before_play(found: _Found, k: int) -> Header:
    """The header of game ``k``.

    Raises:
        RefusedGameError: what refuses the game before its first move.
    """
    game, end = found.games[k], int(found.games[k + 1, FIRST_WORD])
    fault, fault_at = int(game[FAULT]), int(game[FAULT_AT])
    if fault == BAD_TAG:
        raise RefusedGameError("bad_header", _line_at(found.text, fault_at))
    header = parse_header(found.text[game[START] : game[TAGS_END]])
    words_at = found.words_at[game[FIRST_WORD] : end]
    if not len(words_at) and fault in {NO_FAULT, CUT}:
        raise RefusedGameError("no_moves", "")
    if fault != NO_FAULT:
        # Words behind a fault were read too; the ply is that of the fault.
        ply = int(np.searchsorted(words_at, fault_at))
        token = "" if fault == CUT else _word_at(found.text, fault_at)
        raise RefusedGameError(_SCAN_FAULTS[fault], token, ply)
    if game[RESULT] == UNKNOWN_RESULT:
        raise RefusedGameError("unknown_result", "*", len(words_at))
    if header.result is not None and header.result != game[RESULT]:
        raise RefusedGameError("contradicting_result", _result_of(found, k), len(words_at))
    return header


def _start(header: Header) -> UInt64Array:
    """uint64[6]: the position that a game begins at."""
    game = get_game("chess")
    if header.fen is None:
        initial: UInt64Array = game.initial_states(np.zeros(1, dtype=np.uint64))[0]
        return initial
    try:
        return game.parse_state(header.fen)
    except PositionError as error:
        raise RefusedGameError("bad_position", header.fen) from error


def _replay(found: _Found, starts: UInt64Array, wanted: BoolArray) -> _Replayed:
    n, num_words = found.num_games, len(found.words)
    played = _Replayed(
        states=np.empty((num_words, RECORD_WORDS), dtype=np.uint64),
        actions=np.empty(num_words, dtype=np.int16),
        outcomes=np.empty(n, dtype=np.int32),
        plies=np.empty(n, dtype=np.int32),
        terminations=np.empty(n, dtype=np.uint8),
        played_on=np.empty(n, dtype=np.bool_),
    )
    replay(
        found.words, np.ascontiguousarray(found.games[:, FIRST_WORD]), starts, wanted,
        played.states, played.actions, played.outcomes, played.plies, played.terminations,
        played.played_on,
    )
    return played


def _check_after_play(found: _Found, played: _Replayed, k: int, outcome_white: int) -> None:
    """Look at game ``k``, whose moves were played as far as they go.

    Raises:
        RefusedGameError: a move was bad, or the final position contradicts the result.
    """
    ply = int(played.plies[k])
    if played.outcomes[k] != PLAYED:
        kind = "ambiguous_move" if played.outcomes[k] == AMBIGUOUS else "illegal_move"
        at = int(found.words_at[found.games[k, FIRST_WORD] + ply])
        raise RefusedGameError(kind, _word_at(found.text, at), ply)
    code = int(played.terminations[k])
    if code in _FINAL_POSITIONS:
        last = int(found.games[k + 1, FIRST_WORD]) - 1
        white_moved = get_game("chess").side_to_move(played.states[last : last + 1])[0] == 0
        by_the_rules = (1 if white_moved else -1) if code == CHECKMATE else 0
        if outcome_white != by_the_rules:
            raise RefusedGameError("contradicting_result", _result_of(found, k), ply)


def _records(
    played: _Replayed, first_words: Int64Array, is_good: BoolArray, outcomes_white: Int8Array,
    good_headers: list[Header],
) -> GameRecords:
    """The good games among n, their moves next to each other."""
    lengths = np.diff(first_words)
    rows = np.repeat(is_good, lengths)
    good_lengths = lengths[is_good]
    states, actions = played.states[rows], played.actions[rows]
    outcomes = outcomes_white[is_good]
    is_win = outcomes != 0
    terminations = played.terminations[is_good]
    terminations[is_win & (terminations != CHECKMATE)] = ONGOING
    is_cut = (terminations == ONGOING) & ~is_win
    cut_values = np.array([header.truncated_value_white for header in good_headers], np.float32)
    values_white = np.repeat(outcomes.astype(np.float32), good_lengths)
    white_moves = get_game("chess").side_to_move(states) == 0
    N = len(actions)
    return GameRecords(
        states=states,
        actions=actions,
        values_stm=np.where(white_moves, values_white, -values_white),
        surprises=np.zeros(N, np.float32),
        target_offsets=np.arange(N + 1, dtype=np.int64),
        target_actions=actions.copy(),
        target_weights=np.ones(N, np.float32),
        game_offsets=offsets(good_lengths),
        outcomes_white=outcomes,
        terminations=terminations,
        cut_values_white=np.where(is_cut, cut_values, np.float32(0)),
        start_kinds=np.array([header.start_kind for header in good_headers], np.uint8),
    )


def _word_at(text: bytes, at: int) -> str:
    return text[at : at + _LONGEST_TOKEN].split()[0].decode("latin-1")


def _line_at(text: bytes, at: int) -> str:
    return text[at : at + _LONGEST_TOKEN].splitlines()[0].decode("latin-1")


def _result_of(found: _Found, k: int) -> str:
    return RESULT_TEXTS[int(found.games[k, RESULT])]
