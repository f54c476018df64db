"""Whatever is sent: nothing is raised, ``isready`` is answered, and every ``go`` once."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from talk import Gui

from chess_snn.cli.uci import load_model
from chess_snn.uci import Options

WORDS = st.sampled_from([
    "uci", "isready", "ucinewgame", "stop", "ponderhit", "debug", "register", "on", "position",
    "startpos", "fen", "moves", "go", "nodes", "depth", "mate", "movetime", "wtime", "btime",
    "winc", "binc", "movestogo", "infinite", "ponder", "searchmoves", "setoption", "name", "value",
    "MultiPV", "Temperature", "UCI_ShowWDL", "Simulations", "Ticks", "Precision", "bf16", "true",
    "e2e4", "e7e5", "e1g1", "e7e8q", "a7a8k", "0000", "e2e2", "z9z9", "(none)", "-1", "0", "1", "3",
    "99999999999999999999", "1e9", "NaN", "w", "b", "-", "KQkq", "e3",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR", "8/8/8/8/8/8/8/8", "7k/8/8/8/8/8/8/K6Q",
    "k7/8/8/8/8/8/8/K7", "ppppkppp/8/8/8/8/8/8/K7", "9/8/8/8/8/8/8/8", "\x00", "\ud800", "\u00e9",
])
SENTENCES = st.lists(WORDS, max_size=12).map(" ".join)
NEARLY = st.builds(
    lambda line, at, junk: line[: at % len(line)] + junk + line[at % len(line) :],
    st.sampled_from([
        "position startpos moves e2e4 e7e5 g1f3", "go wtime 1000 btime 1000 winc 10 binc 10",
        "position fen rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1 moves e2e4",
        "setoption name MultiPV value 2", "go nodes 5", "setoption name Move Overhead value 1",
        "position fen r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 99 200 moves e8g8 e1c1",
    ]),
    st.integers(0, 200), st.text(max_size=3),
)
LINES = st.one_of(SENTENCES, NEARLY, st.text(max_size=80), st.just("quit"))


@pytest.fixture(scope="module")
def gui(model):
    gui = Gui(load_model, Options(model=str(model), hash_mib=1, simulations=3))
    yield gui
    gui.session.close()


def check(gui, line):
    before = gui.session._search
    del gui.lines[:]
    assert gui.session.handle(line) or "quit" in line.split()
    gui.send("stop", "isready")
    gui.wait_for("readyok")
    begun = gui.session._search is not before
    if begun:
        gui.wait_for("bestmove")
        gui.session._search.join()
    assert sum(text.startswith("bestmove") for text in gui.lines) == int(begun)
    assert not any("the search failed" in text for text in gui.lines)


@pytest.mark.fault(20)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(line=LINES)
def test_no_line_raises_or_hangs(gui, line):
    check(gui, line)


@pytest.mark.fault(20)
@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(line=LINES)
def test_none_of_ten_thousand_lines_raises_or_hangs(gui, line):
    check(gui, line)
