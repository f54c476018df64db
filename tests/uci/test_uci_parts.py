"""Options, scores and positions."""

import chess
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.errors import ConfigError, IllegalMoveError, PositionError
from chess_snn.games import get_game
from chess_snn.uci import Options
from chess_snn.uci.options import declare, set_option
from chess_snn.uci.position import Position
from chess_snn.uci.report import centipawns, moves_to_mate, wdl_per_mille

GAME = get_game("chess")
values = st.floats(-1, 1)


@given(values, values)
def test_centipawns_rise_with_the_value(a, b):
    if a <= b:
        assert centipawns(a) <= centipawns(b)
    assert centipawns(-a) == -centipawns(a)


def test_centipawns_are_leelas():
    assert [centipawns(v) for v in (0.0, 1 / 3, 1.0)] == [0, 52, 12_780]


@given(values, st.floats(0, 1))
def test_per_mille_add_up_and_keep_the_value(value, draw_share):
    win, draw, loss = wdl_per_mille(value, draw_share)
    assert win + draw + loss == 1000
    assert min(win, draw, loss) >= 0
    assert abs((win - loss) / 1000 - value) <= 0.002


def test_plies_to_mate_are_moves():
    assert [moves_to_mate(n) for n in (1, 3, 5, -2, -4)] == [1, 2, 3, -1, -2]


def test_options_are_declared_with_their_defaults():
    lines = declare(Options(model="runs/a b", threads=3))
    assert "option name Model type string default runs/a b" in lines
    assert "option name Threads type spin default 3 min 1 max 1024" in lines
    assert "option name UCI_ShowWDL type check default false" in lines
    precisions = "default model var model var fp32 var bf16 var int8"
    assert f"option name Precision type combo {precisions}" in lines
    assert "option name Model type string default <empty>" in declare(Options())


@pytest.mark.parametrize(("name", "value", "field", "result"), [
    ("multipv", "4", "multipv", 4), ("Move Overhead", "0", "move_overhead_ms", 0),
    ("Temperature", "0.5", "temperature", 0.5), ("PONDER", "TRUE", "ponder", True),
    ("Precision", "int8", "precision", "int8"), ("Model", "<empty>", "model", ""),
])
def test_an_option_is_set_by_its_name(name, value, field, result):
    assert getattr(set_option(Options(model="x"), name, value), field) == result


@pytest.mark.parametrize(("name", "value", "reason"), [
    ("Contempt", "1", "unknown option 'Contempt'; known: Model, Simulations"),
    ("Threads", "0", "Threads must be >= 1"), ("Threads", "two", "Threads must be a whole number"),
    ("Threads", "", "whole number"), ("Hash", "9" * 5000, "whole number"),
    ("Temperature", "nan", "Temperature must be a number"), ("Temperature", "-1", "must be >= 0"),
    ("Precision", "fp8", "Precision must be one of model, fp32, bf16, int8"),
    ("Ponder", "maybe", "Ponder must be one of true, false"),
    ("Simulations", "1000000", "Simulations must be"),
])
def test_an_option_that_cannot_be_set_says_why(name, value, reason):
    with pytest.raises(ConfigError, match=reason):
        set_option(Options(), name, value)


def test_a_position_follows_its_moves():
    moves = ("e2e4", "e7e5", "g1f3")
    position = Position.after(GAME, None, moves)
    board = chess.Board()
    for move in moves:
        board.push_uci(move)
    assert position.board == board
    assert GAME.format_state(position.root.state[0]) == board.fen()
    assert position.root.ply[0] == 3


def test_what_was_played_since_is_known():
    earlier = Position.after(GAME, None, ("e2e4",))
    later = Position.after(GAME, None, ("e2e4", "e7e5", "g1f3"))
    assert len(later.actions_since(earlier)) == 2
    assert later.actions_since(later) == []
    assert earlier.actions_since(later) is None
    assert Position.after(GAME, None, ("d2d4", "e7e5")).actions_since(earlier) is None
    same_board = Position(GAME, earlier.board.fen())
    assert same_board.actions_since(earlier) is None  # another past, other repetitions


def test_a_game_goes_on_after_a_draw_that_nobody_claimed():
    shuffle = ("g1f3", "g8f6", "f3g1", "f6g8") * 3
    position = Position.after(GAME, None, (*shuffle, "e2e4"))
    assert position.is_searchable
    assert GAME.format_state(position.root.state[0]) == position.board.fen()
    at_the_third_time = Position.after(GAME, None, shuffle[:8])
    assert at_the_third_time.is_searchable
    before = Position.after(GAME, None, shuffle[:7])
    assert at_the_third_time.actions_since(before) is None
    quiet = Position(GAME, "7k/8/8/8/8/8/8/K5R1 w - - 100 90")
    assert quiet.is_searchable
    assert quiet.board.halfmove_clock == 100


def test_an_end_is_an_end():
    mate = Position.after(GAME, None, ("f2f3", "e7e5", "g2g4", "d8h4"))
    assert not mate.is_searchable
    assert mate.any_move() is None
    bare = Position(GAME, "7k/8/8/8/8/8/8/K7 w - - 0 1")
    assert not bare.is_searchable
    assert bare.any_move() in bare.board.legal_moves


def test_bad_positions_and_moves_are_named():
    with pytest.raises(IllegalMoveError, match="'e7e4'"):
        Position.after(GAME, None, ("e2e4", "e7e4", "d2d4"))
    for fen in ("", "8/8/8/8/8/8/8/8 w - - 0 1", "kk6/8/8/8/8/8/8/K7 w - - 0 1", "x"):
        with pytest.raises(PositionError):
            Position(GAME, fen)


def test_a_searched_row_is_never_changed_by_a_later_position():
    position = Position.after(GAME, None, ("e2e4",))
    state = position.root.state.copy()
    Position.after(GAME, None, ("e2e4", "e7e5"))
    np.testing.assert_array_equal(position.root.state, state)
