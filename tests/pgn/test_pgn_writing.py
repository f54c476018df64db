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
from chess_snn.pgn import format_game, format_moves, game_tags, read_games, standard_tags


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
