"""Records to PGN and back: python-chess reads it, and it imports to the same games."""

import io
from dataclasses import replace

import chess
import chess.pgn
import numpy as np
import pytest
from hypothesis import given, settings
from random_games import COLUMNS, any_played_records, random_records

from chess_snn.errors import CorruptDataError
from chess_snn.games.chess import action_of_move
from chess_snn.pgn.reading import read_games
from chess_snn.pgn.writing import format_game, format_moves, game_tags, standard_tags


def to_pgn(records, more=None):
    return "".join(
        format_game(records, k, (more or {}) | standard_tags(records, k, is_cut=True))
        for k in range(records.num_games)
    )


@settings(max_examples=60)
@given(any_played_records())
def test_what_is_exported_imports_to_the_same_games(records):
    again, report = read_games(to_pgn(records).encode())
    assert (report.games, report.refused) == (records.num_games, {})
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(again, name), getattr(records, name), name)


def test_python_chess_reads_the_same_games():
    records = random_records(60, 200, seed=5, start_plies=20)
    text = io.StringIO(to_pgn(records, {"Event": 'The "best" \\ game', "Site": "Ål"}))
    for k in range(records.num_games):
        game = chess.pgn.read_game(text)
        assert not game.errors
        assert game.headers["Event"].replace("\\", "") == 'The "best"  game'
        assert game.headers["Site"] == "Ål"
        board, rows = game.board(), range(*records.game_offsets[k : k + 2])
        moves = list(game.mainline_moves())
        assert game.headers["PlyCount"] == str(len(rows)) == str(len(moves))
        for row, move in zip(rows, moves, strict=True):
            assert records.actions[row] == action_of_move(move, board.turn)
            board.push(move)
        ends = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}
        assert game.headers["Result"] == ends[records.outcomes_white[k]]
    assert chess.pgn.read_game(text) is None


def test_moves_are_written_as_python_chess_writes_them():
    records = random_records(40, 300, seed=6, start_plies=30)
    for k in range(records.num_games):
        text = format_game(records, k, standard_tags(records, k))
        game = chess.pgn.read_game(io.StringIO(text))
        exporter = chess.pgn.StringExporter(headers=False, columns=None)
        _, movetext = text.split("\n\n", 1)
        assert movetext.split() == game.accept(exporter).split()
        assert max(map(len, movetext.splitlines())) <= 79


@pytest.mark.parametrize("action", [0, 4672, 32_767])
def test_a_record_that_cannot_be_played_is_named(action):
    records = random_records(1, 40, seed=1)
    actions = records.actions.copy()
    actions[-1] = action
    named = rf"game 0 of a shard plays action {action} at '.* [wb] "
    with pytest.raises(CorruptDataError, match=named):
        to_pgn(replace(records, actions=actions))


QUEENS, KINGS = ((1 << 30) - 1) << 16, 1 | 1 << 63
META = 64 << 5 | 1 << 22
"""White to move, the first move."""
IMPOSSIBLE = {
    "thirty queens": [QUEENS, KINGS, QUEENS | KINGS, QUEENS | 1, META],
    "no king": [QUEENS, 0, QUEENS, QUEENS, META],
    "empty": [0, 0, 0, 0, META],
    "noise": [2**64 - 1] * 5,
}
"""Rows that would lead a move generator out of its tables."""


def with_state(records, row, state):
    states = records.states.copy()
    states[row] = np.array(state, np.uint64)
    return replace(records, states=states)


@pytest.mark.parametrize("state", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_game_that_begins_at_no_position_is_named_bug(state):
    damaged = with_state(random_records(2, 40, seed=1), 0, state)
    with pytest.raises(CorruptDataError, match="game 0 "):
        standard_tags(damaged, 0)
    with pytest.raises(CorruptDataError, match="game 0 "):
        format_game(damaged, 0, {"Result": "*"})
    assert format_game(damaged, 1, standard_tags(damaged, 1))


@pytest.mark.parametrize("ply", [1, 7])
@pytest.mark.parametrize("state", [*IMPOSSIBLE.values(), None], ids=[*IMPOSSIBLE, "another"])
def test_a_position_that_its_moves_do_not_lead_to_is_named_bug(state, ply):
    records = random_records(1, 40, seed=1)
    another = records.states[ply] ^ np.array([0, 0, 0, 0, 1 << 12], np.uint64)  # its clock
    damaged = with_state(records, ply, another if state is None else state)
    with pytest.raises(CorruptDataError, match=rf"game 0 .*ply {ply} "):
        to_pgn(damaged)


def test_a_game_that_was_played_on_after_a_draw_is_written():
    shuffle = "Nf3 Nf6 Ng1 Ng8 "
    moves = f"{3 * shuffle}e4 e5 Ke2 Ke7"
    records, report = read_games(f'[Result "1/2-1/2"]\n\n{moves} 1/2-1/2\n'.encode())
    assert (report.games, report.played_on) == (1, 1)
    again, _ = read_games(to_pgn(records).encode())
    np.testing.assert_array_equal(again.states, records.states)
    np.testing.assert_array_equal(again.actions, records.actions)


def test_a_cut_game_is_told_from_a_drawn_one():
    records = random_records(200, 30, seed=2)
    is_cut = (records.terminations == 0) & (records.outcomes_white == 0)
    assert 0 < is_cut.sum() < 200
    for k, cut in enumerate(is_cut):
        tags = standard_tags(records, k, is_cut=True)
        assert tags["Termination"] == ("adjudication" if cut else "normal")
        assert ("CutValueWhite" in tags) == bool(records.cut_values_white[k])
        assert standard_tags(records, k)["Termination"] == "normal"


def test_a_game_without_moves():
    fen = "7k/5Q2/8/8/8/8/8/K7 w - - 0 1"
    text = format_moves(
        np.empty((0, 5), np.uint64), np.empty(0, np.int16),
        game_tags(-1, fen, 0, is_cut=False), place="a game",
    )
    game = chess.pgn.read_game(io.StringIO(text))
    assert (game.headers["Result"], game.board().fen(), game.end()) == ("0-1", fen, game)
