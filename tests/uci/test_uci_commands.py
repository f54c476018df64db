"""Lines into commands."""

import pytest

from chess_snn.uci.commands import Go, Nonsense, SetOption, SetPosition, Word, parse
from chess_snn.uci.limits import Limits


@pytest.mark.parametrize(("line", "command"), [
    ("uci", Word("uci")),
    ("  isready \r\n", Word("isready")),
    ("quit now", Word("quit")),
    ("joho stop", Word("stop")),
    ("\tgo\tnodes\t5", Go(Limits(nodes=5))),
    ("debug on", Nonsense("")),
    ("", Nonsense("")),
    (" \t ", Nonsense("")),
    ("hello engine", Nonsense("unknown command: hello engine")),
    ("UCI", Nonsense("unknown command: UCI")),
    ("setoption name MultiPV value 3", SetOption("MultiPV", "3")),
    ("setoption name Move Overhead value 20", SetOption("Move Overhead", "20")),
    ("setoption name Model value /my nets/a  b", SetOption("Model", "/my nets/a  b")),
    ("setoption name Clear Hash", SetOption("Clear Hash")),
    ("setoption name Model value", SetOption("Model", "")),
    ("position startpos", SetPosition(None)),
    ("position startpos moves e2e4 e7e5", SetPosition(None, ("e2e4", "e7e5"))),
    ("position fen 8/8/8/8/8/8/8/8 w - - 0 1 moves a1a2",
     SetPosition("8/8/8/8/8/8/8/8 w - - 0 1", ("a1a2",))),
    ("go", Go(Limits())),
    ("go infinite", Go(Limits(infinite=True))),
    ("go ponder wtime 1000 btime 900 winc 10 binc 9 movestogo 7",
     Go(Limits(ponder=True, wtime_ms=1000, btime_ms=900, winc_ms=10, binc_ms=9, movestogo=7))),
    ("go searchmoves e2e4 d2d4 depth 3", Go(Limits(searchmoves=("e2e4", "d2d4"), depth=3))),
    ("go mate 2 movetime 50", Go(Limits(mate=2, movetime_ms=50))),
    ("go wtime -30", Go(Limits(wtime_ms=0))),
])
def test_what_a_line_says(line, command):
    assert parse(line) == command


@pytest.mark.parametrize(("line", "limits", "fault"), [
    ("go nodes", Limits(), "nodes needs a number"),
    ("go nodes infinite", Limits(infinite=True), "nodes needs a number"),
    ("go nodes many depth 2", Limits(depth=2), "nodes needs a whole number, got many"),
    ("go nodes 1e3", Limits(), "got 1e3"),
    ("go movetime 99999999999999999999", Limits(), "movetime needs a whole number"),
    ("go fast", Limits(), "unknown word fast"),
])
def test_what_a_go_does_not_say_well_is_left_out(line, limits, fault):
    command = parse(line)
    assert command.limits == limits
    assert fault in command.faults[0]


@pytest.mark.parametrize("line", [
    "position", "position e2e4", "position fen", "position startpos e2e4",
    "position fen moves e2e4", "setoption", "setoption MultiPV 3", "setoption name",
    "setoption name value 3",
])
def test_what_says_nothing_is_nonsense_with_a_reason(line):
    command = parse(line)
    assert isinstance(command, Nonsense)
    assert command.fault


def test_a_line_of_a_megabyte_is_read_at_once():
    for line in ("a " * 500_000, "go " + "x " * 500_000, " " * 10**6,
                 "setoption name " + " " * 10**6 + "x", "setoption name a" + " value" * 200_000):
        parse(line)
