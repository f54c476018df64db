"""Lines, limits, options, scores and positions of the UCI engine."""

import math
from contextlib import suppress

import chess
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.errors import ConfigError, UsageError
from chess_snn.games import get_game
from chess_snn.uci import Options
from chess_snn.uci.commands import parse_go, parse_option, parse_position, split_line
from chess_snn.uci.engine import LONGEST_WAVE_S, Pace
from chess_snn.uci.limits import Limits, budget_of
from chess_snn.uci.options import declare, set_option
from chess_snn.uci.position import Position
from chess_snn.uci.report import centipawns, moves_to_mate, wdl_per_mille
from chess_snn.uci.session import COMMANDS

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


@pytest.mark.parametrize(("name", "value"), [
    ("Contempt", "1"), ("Threads", "0"), ("Threads", "two"), ("Threads", ""), ("Hash", "9" * 5000),
    ("Temperature", "nan"), ("Temperature", "-1"), ("Precision", "fp8"), ("Ponder", "maybe"),
    ("Simulations", "1000000"),
])
def test_an_option_that_cannot_be_set_is_named(name, value):
    with pytest.raises(ConfigError, match=name):
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


# Lines into commands.


PARSERS = {"setoption": parse_option, "position": parse_position, "go": parse_go}


def parse(line):
    """The command on the line, and what its arguments say."""
    name, arguments = split_line(line, COMMANDS)
    return name, PARSERS[name](arguments) if name in PARSERS else arguments


@pytest.mark.parametrize(("line", "name", "said"), [
    ("uci", "uci", ""),
    ("  isready \r\n", "isready", ""),
    ("joho stop", "stop", ""),
    ("\tgo\tnodes\t5", "go", (Limits(nodes=5), [])),
    ("debug on", "debug", "on"),
    (" \t ", "", ""),
    ("setoption name Move Overhead value 20", "setoption", ("Move Overhead", "20")),
    ("setoption name Model value /my nets/a  b", "setoption", ("Model", "/my nets/a  b")),
    ("setoption name Model value", "setoption", ("Model", "")),
    ("position startpos moves e2e4 e7e5", "position", (None, ("e2e4", "e7e5"))),
    ("position fen 8/8/8/8/8/8/8/8 w - - 0 1 moves a1a2", "position",
     ("8/8/8/8/8/8/8/8 w - - 0 1", ("a1a2",))),
    ("go", "go", (Limits(), [])),
    ("go ponder wtime 1000 btime 900 winc 10 binc 9 movestogo 7", "go",
     (Limits(ponder=True, wtime_ms=1000, btime_ms=900, winc_ms=10, binc_ms=9, movestogo=7), [])),
    ("go searchmoves e2e4 d2d4 depth 3", "go",
     (Limits(searchmoves=("e2e4", "d2d4"), depth=3), [])),
    ("go mate 2 movetime 50", "go", (Limits(mate=2, movetime_ms=50), [])),
    ("go wtime -30", "go", (Limits(wtime_ms=0), [])),
])
def test_what_a_line_says(line, name, said):
    assert parse(line) == (name, said)


@pytest.mark.parametrize(("line", "limits", "fault"), [
    ("go nodes", Limits(nodes=1), "nodes"),
    ("go nodes infinite", Limits(infinite=True), "nodes"),
    ("go nodes many depth 2", Limits(depth=2), "many"),
    ("go nodes 1e3", Limits(nodes=1), "1e3"),
    ("go movetime 99999999999999999999", Limits(nodes=1), "movetime"),
    ("go a b c d e f", Limits(nodes=1), "a"),
    ("go fast searchmoves e2e4", Limits(nodes=1, searchmoves=("e2e4",)), "fast"),
])
def test_what_a_go_does_not_say_well_is_left_out(line, limits, fault):
    _, (found, faults) = parse(line)
    assert found == limits
    assert fault in faults[0]
    assert any("no limit" in said for said in faults) == (found.nodes == 1)
    assert len(faults) <= 4


@pytest.mark.parametrize(("line", "reason"), [
    ("hello engine", "hello engine"), ("UCI", "UCI"),
    *((line, line.split()[0]) for line in (
        "position", "position e2e4", "position fen", "position startpos e2e4",
        "position fen moves e2e4", "setoption", "setoption MultiPV 3", "setoption name",
        "setoption name value 3",
    )),
])
def test_what_says_nothing_is_refused_with_a_reason(line, reason):
    with pytest.raises(UsageError, match=reason):
        parse(line)


@pytest.mark.parametrize("line", [
    "a " * 500_000, "go " + "x " * 500_000, " " * 10**6, "setoption name " + " " * 10**6 + "x",
    "setoption name a" + " value" * 200_000,
], ids=lambda line: line[:10])
def test_a_line_of_a_megabyte_is_read_at_once(line):
    with suppress(UsageError):
        parse(line)


# The clock: time is used, and never all of it.


times_ms = st.integers(0, 10**8)


@given(times_ms, st.integers(0, 10**6), st.none() | st.integers(0, 100), st.floats(0, 5))
def test_a_move_never_takes_what_is_set_aside(left_ms, increment_ms, movestogo, overhead_s):
    limits = Limits(wtime_ms=left_ms, winc_ms=increment_ms, movestogo=movestogo)
    seconds = limits.seconds(True, overhead_s)
    assert seconds >= 0
    assert seconds == 0 or seconds + overhead_s < left_ms / 1000
    assert limits.seconds(False, overhead_s) is None


@given(times_ms, st.floats(0, 5))
def test_a_fixed_time_is_undercut(movetime_ms, overhead_s):
    seconds = Limits(movetime_ms=movetime_ms).seconds(True, overhead_s)
    assert movetime_ms / 2000 <= seconds <= max(movetime_ms / 1000 - overhead_s, movetime_ms / 2000)


@given(st.integers(1, 10**6), st.floats(0.01, 5))
def test_a_clock_alone_is_worth_saving(simulations, used_s):
    board = {"white_to_move": True, "num_moves": 20}
    clock = budget_of(Limits(wtime_ms=400_000), Options(move_overhead_ms=0), **board)
    least = simulations * (clock.seconds - used_s) / used_s
    assert least < clock.most_to_come(simulations, used_s) < 2 * least
    assert clock.most_to_come(0, used_s) == math.inf
    for limits in (Limits(movetime_ms=10_000), Limits(nodes=9), Limits(infinite=True)):
        assert budget_of(limits, Options(), **board).most_to_come(simulations, used_s) == math.inf


def test_no_time_is_no_limit():
    assert Limits(nodes=5).seconds(True, 0.1) is None
    assert Limits(infinite=True, wtime_ms=5).seconds(True, 0.1) is None


@pytest.mark.parametrize(("left_s", "increment_s", "movestogo", "moves"), [
    (60, 0, None, 300), (1, 0, None, 60), (300, 3, None, 300), (5, 0.1, None, 300),
    (60, 0, 40, 400), (10, 0, 5, 100), (0.5, 0.05, None, 300),
])
def test_a_long_game_is_not_lost_on_time(left_s, increment_s, movestogo, moves):
    """Whatever the clock; the true overhead is a tenth of the time set aside for it."""
    clock_s, used_s = left_s, 0.0
    for move in range(moves):
        togo = None if movestogo is None else movestogo - move % movestogo
        seconds = Limits(
            wtime_ms=int(1000 * clock_s), winc_ms=int(1000 * increment_s), movestogo=togo
        ).seconds(True, 0.1)
        clock_s -= seconds + 0.01
        used_s += seconds
        assert clock_s > 0
        clock_s += increment_s + (left_s if togo == 1 else 0)
    assert used_s > 0.4 * (left_s if left_s > 20 else 0)


def test_waves_shrink_until_they_are_short_and_grow_again():
    pace = Pace(64)
    seconds_a_leaf = 0.01
    for _ in range(10):
        leaves = pace.leaves(visits=10_000, wanted=100)
        pace.record(leaves, leaves * seconds_a_leaf)
    assert pace.leaves(10_000, 100) * seconds_a_leaf <= LONGEST_WAVE_S
    assert pace.reserve_s < 0.64
    for _ in range(50):
        leaves = pace.leaves(10_000, 100)
        pace.record(leaves, leaves * 1e-5)
    assert pace.leaves(10_000, 100) == 64
    assert pace.reserve_s < 0.01
    assert pace.leaves(10_000, 3) == 3
    assert pace.leaves(0, 100) == 1


def test_a_wave_that_cannot_shrink_is_one_leaf():
    pace = Pace(8)
    for _ in range(10):
        pace.record(pace.leaves(10_000, 100), 5.0)
    assert pace.leaves(10_000, 100) == 1
    assert pace.reserve_s == 5.0


def test_what_is_done_beside_a_wave_is_kept_clear_of_and_shrinks_no_wave():
    pace = Pace(8)
    pace.record(8, LONGEST_WAVE_S / 4, aside_s=1.0)
    assert pace.reserve_s == LONGEST_WAVE_S / 4 + 1.0
    assert pace.leaves(10_000, 100) == 8


def test_one_slow_wave_does_not_spoil_the_moves_to_come():
    """An engine whose reserve exceeds its time makes no wave that could correct it."""
    pace = Pace(8)
    pace.record(8, 5.0)
    for _ in range(10):
        pace.begin_search()
    assert pace.reserve_s < 0.01


def test_a_searched_row_is_never_changed_by_a_later_position():
    position = Position.after(GAME, None, ("e2e4",))
    state = position.root.state.copy()
    Position.after(GAME, None, ("e2e4", "e7e5"))
    np.testing.assert_array_equal(position.root.state, state)
