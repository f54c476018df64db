"""Conversations with an engine in this process."""

import itertools
import random
import threading
import time

import chess
import pytest
from talk import PATIENCE_S, Gui

from chess_snn.cli.uci import load_chess
from chess_snn.errors import CorruptDataError
from chess_snn.games import get_game
from chess_snn.uci import Options, Session

MATE_IN_ONE = "position fen 6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1"
CHECKMATED = "position fen 7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"
STALEMATED = "position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"
MANY_MOVES = (
    "position fen r1bq1rk1/pp2bppp/2n1pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QK2R w KQ - 4 8"
)
FEW_MOVES = "position fen 7k/8/8/8/8/8/5PPP/6K1 w - - 0 1"

PATIENCE_UNDER_LOAD_S = 4.0


def test_the_introduction_ends_with_uciok(talk):
    gui = talk()
    gui.send("uci")
    assert gui.lines[0].startswith("id name chess-snn ")
    assert gui.lines[-1] == "uciok"
    names = {line.split(" type ")[0].removeprefix("option name ") for line in gui.lines[2:-1]}
    assert names == {"Model", "Simulations", "Temperature", "Threads", "Device", "Hash", "Ticks",
                     "Precision", "MultiPV", "UCI_ShowWDL", "Ponder", "Move Overhead"}


def random_positions(count, seed):
    stream, boards = random.Random(seed), []
    while len(boards) < count:
        board = chess.Board()
        for _ in range(stream.randint(0, 150)):
            if not any(board.legal_moves):
                break
            board.push(stream.choice(list(board.legal_moves)))
        boards.append(board)
    return boards


@pytest.mark.slow
def test_random_positions_get_legal_moves(talk):
    gui = talk(simulations=12)
    for board in random_positions(40, seed=3):
        moves = " ".join(move.uci() for move in board.move_stack)
        ways = (f"position startpos moves {moves}", f"position fen {board.fen()}")
        for position in ways[: 2 if board.is_valid() else 1]:
            best = gui.best(position, "go")
            legal = [move.uci() for move in board.legal_moves]
            assert best in (legal or ["(none)"])


@pytest.mark.parametrize("position", [CHECKMATED, STALEMATED])
@pytest.mark.parametrize("with_network", [True, False])
def test_at_the_end_of_a_game_there_is_no_move(talk, position, with_network):
    gui = talk() if with_network else talk(model="")
    assert gui.best(position, "go nodes 5") == "(none)"


def test_without_a_network_the_first_legal_move_is_played_and_said_to_be_one(talk, model):
    gui = talk(model="")
    board = chess.Board()
    board.push_uci("e2e4")
    best = gui.best("position startpos moves e2e4", "go nodes 100")
    assert chess.Move.from_uci(best) in board.legal_moves
    assert any(text.startswith("NO NETWORK") for text in gui.strings())
    gui.send("isready")
    gui.ask(f"setoption name Model value {model}", "go nodes 10")
    assert f"model {model}" in gui.strings()
    assert not any("NO NETWORK" in text for text in gui.strings())


def test_infinite_and_ponder_wait_for_their_end(talk):
    gui = talk(simulations=5)
    gui.send("isready")
    for begin, end in (("go infinite", "stop"), ("go ponder wtime 100 btime 100", "ponderhit"),
                       ("go ponder", "ponderhit"), ("go ponder nodes 1", "stop"),
                       ("go ponder infinite", "stop")):
        for position in ("position startpos", MATE_IN_ONE, CHECKMATED):
            del gui.lines[:]
            gui.send(position, begin)
            time.sleep(0.2)
            gui.send("isready")
            assert gui.lines[-1] == "readyok"
            if begin == "go infinite":
                gui.send("ponderhit")
                assert "ponderhit" in gui.lines[-1]
            assert not any(line.startswith("bestmove") for line in gui.lines)
            gui.send(end)
            gui.wait_for("bestmove")
    model_free = talk(model="")
    model_free.send("go infinite")
    time.sleep(0.2)
    assert not any(line.startswith("bestmove") for line in model_free.lines)
    model_free.send("stop")
    model_free.wait_for("bestmove")


@pytest.mark.slow
def test_a_full_tree_waits_too(talk):
    gui = talk(hash_mib=1)
    gui.send("position startpos", "go infinite")
    size = 0
    while (info := gui.wait_for("info depth")[-1:]) and int(nodes(info[0])) > size:
        size = int(nodes(info[0]))
        time.sleep(1.5)
    gui.send("stop")
    gui.wait_for("bestmove")
    assert 1000 < size < 2500
    assert gui.best("go depth 99") != "(none)"


def nodes(info):
    return info.split(" nodes ")[1].split()[0]


def test_an_illegal_move_is_named_and_the_position_before_stays(talk):
    gui = talk(simulations=5)
    gui.send("position startpos moves e2e4")
    gui.send("position startpos moves e2e4 e7e5 e1e3 a7a6")
    assert "'e1e3'" in gui.strings()[-1]
    board = chess.Board()
    board.push_uci("e2e4")
    assert chess.Move.from_uci(gui.best("go")) in board.legal_moves
    (said,) = [text for text in gui.strings() if text.startswith("searching")]
    assert board.fen() in said
    assert "'e1e3'" in said
    for refused in ("position fen 8/8/8/8/8/8/8/8 w - - 0 1", "position", "position fen x moves"):
        gui.lines.clear()
        gui.send(refused)
        assert len(gui.lines) == 1
        assert gui.lines[0].startswith("info string position")
    gui.ask("position startpos", "go")
    assert not any("refused" in text for text in gui.strings())


def test_the_tree_is_kept_from_move_to_move_until_a_new_game(talk):
    gui = talk()
    best = gui.ask("position startpos", "go nodes 300")[-1].split()
    answer = best[3]
    heard = gui.ask(f"position startpos moves {best[1]} {answer}", "go nodes 50")
    kept = [text for text in gui.strings() if "visits kept" in text]
    assert kept
    assert int(kept[0].split()[0]) > 0
    assert nodes(heard[-2]) == "50"
    for other in ("ucinewgame", MATE_IN_ONE, "setoption name Hash value 17"):
        gui.ask("position startpos", "go nodes 50")
        gui.ask(other, "go nodes 50")
        assert not any("visits kept" in text for text in gui.strings())


def test_a_mate_is_proved_and_played(talk):
    gui = talk(show_wdl=True)
    for go in ("go nodes 100000", "go mate 1", "go depth 50", "go wtime 60000 btime 60000"):
        heard = gui.ask("ucinewgame", MATE_IN_ONE, go)
        assert heard[-1] == "bestmove a1a8"
        assert " score mate 1 wdl 1000 0 0 " in heard[-2]
        assert heard[-2].endswith(" pv a1a8")


def test_multipv_tells_different_moves_in_order(talk):
    gui = talk(multipv=3, show_wdl=True)
    heard = gui.ask(FEW_MOVES, "go nodes 200")
    rows = [line.split() for line in heard if line.startswith("info depth")][-3:]
    assert [row[row.index("multipv") + 1] for row in rows] == ["1", "2", "3"]
    moves = [row[row.index("pv") + 1] for row in rows]
    assert len(set(moves)) == 3
    assert heard[-1].split()[1] == moves[0]
    for row in rows:
        wdl = [int(word) for word in row[row.index("wdl") + 1 : row.index("wdl") + 4]]
        assert sum(wdl) == 1000


def test_only_searchmoves_are_searched(talk):
    gui = talk(multipv=9)
    heard = gui.ask("position startpos", "go nodes 60 searchmoves a2a3 e2e5 h2h4")
    assert any("'e2e5'" in text for text in gui.strings())
    moves = {line.split(" pv ")[1].split()[0] for line in heard if " pv " in line}
    assert moves == {"a2a3", "h2h4"}
    heard = gui.ask("go nodes 200")
    assert not any("visits kept" in text for text in gui.strings())
    assert gui.best("go nodes 5 searchmoves e2e5") != "(none)"


def test_go_says_how_long(talk):
    gui = talk(simulations=33)
    assert nodes(gui.ask("go")[-2]) == "33"
    assert nodes(gui.ask("ucinewgame", "go nodes 7")[-2]) == "7"
    # A move takes 0.6 s of a clock of 20 s; the clock of the other side is no limit.
    assert int(nodes(gui.ask("ucinewgame", "go wtime 20000")[-2])) > 0
    black_to_move = ("ucinewgame", "position startpos moves e2e4")
    assert nodes(gui.ask(*black_to_move, "go wtime 20000")[-2]) == "33"
    depth = gui.ask("ucinewgame", "go depth 3")[-2].split()
    assert int(depth[2]) >= 3


def test_a_depth_that_no_line_can_reach_is_searched_for_ever_bug(talk):
    gui = talk()
    best = gui.best("position fen 7k/8/8/8/8/8/1q6/K7 w - - 0 1", "go depth 2")
    assert best == "a1b2"  # the only move, and a draw: neither side has what mates


def test_a_fixed_time_is_used_and_kept(talk):
    gui = talk(hash_mib=64)
    gui.send("isready", MANY_MOVES)
    start = time.monotonic()
    gui.ask("go movetime 1000")
    assert 0.4 < time.monotonic() - start < 1.0 + PATIENCE_UNDER_LOAD_S


def test_a_clock_is_not_used_up_for_a_settled_move(talk, model):
    gui = talk(model=f"{model}#search.kind=puct", move_overhead_ms=0)
    gui.send("isready", "position fen 8/8/7Q/8/8/8/5q1K/5k2 w - - 0 1")  # Kh1 is mated at once
    start = time.monotonic()
    heard = gui.ask("go wtime 40000 movestogo 20")
    assert heard[-1].startswith("bestmove h2h3")
    assert time.monotonic() - start < 1.7  # of 2 s


def test_a_clock_without_time_still_gets_a_move(talk):
    gui = talk()
    for clock in ("wtime 0 btime 0", "wtime -50 btime 10", "movetime 0", "nodes 0",
                  "wtime 1 btime 1 movestogo 0", "wtime 1 winc 1 movestogo 1"):
        assert gui.best("position startpos", f"go {clock}") != "(none)"


@pytest.mark.parametrize("next_game", [
    ("position startpos moves e2e4", "go nodes 3"),
    ("ucinewgame", "isready", "position startpos moves e2e4", "go nodes 3"),
])
@pytest.mark.parametrize("begin", ["go infinite", "go movetime 60000"])
def test_a_gui_that_does_not_stop_waits_for_ever_bug(talk, begin, next_game):
    gui = talk()
    gui.ask("go nodes 1")
    gui.lines.clear()
    gui.send(begin, next_game[0])
    assert gui.lines[-1].startswith("bestmove"), "the answer comes before the next command's"
    gui.send(*next_game[1:])
    first, second = gui.wait_for("bestmove", 2)
    assert chess.Move.from_uci(first.split()[1]) in chess.Board().legal_moves
    board = chess.Board()
    board.push_uci("e2e4")
    assert chess.Move.from_uci(second.split()[1]) in board.legal_moves


def test_a_second_go_ends_the_first(talk):
    gui = talk()
    gui.send("go infinite", "setoption name Threads value 2", "go nodes 1", "stop", "stop")
    assert len(gui.wait_for("bestmove", 2)) == 2


def test_a_position_that_cannot_be_read_does_not_end_a_search(talk):
    gui = talk()
    gui.send("go infinite", "position e2e4")
    assert not any(line.startswith("bestmove") for line in gui.lines)
    gui.send("stop")
    gui.wait_for("bestmove")


@pytest.mark.parametrize("go", ["go fast", "go nodes", "go movetime 1e9", "go time 5 moves 3"])
def test_a_go_without_a_known_limit_searches_for_long_bug(talk, go):
    gui = talk(simulations=100_000)
    heard = gui.ask(go)
    assert nodes(heard[-2]) == "1"
    assert any("no limit" in text for text in gui.strings())


PERFT = (
    ("position startpos", 3),
    ("position fen r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", 2),
    ("position fen r3k2r/8/8/3pP3/8/8/8/R3K2R w KQkq d6 0 1 moves e1g1", 3),
    ("position fen n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 99 200", 2),
    (CHECKMATED, 2), (STALEMATED, 1), (MATE_IN_ONE, 0), (FEW_MOVES, 6),
)


def leaves(board, depth):
    if depth == 0:
        return 1
    if depth == 1:
        return board.legal_moves.count()
    total = 0
    for move in board.legal_moves:
        board.push(move)
        total += leaves(board, depth - 1)
        board.pop()
    return total


@pytest.mark.parametrize(("position", "depth"), PERFT)
def test_perft_counts_as_python_chess_does(talk, position, depth):
    gui = talk(model="")
    gui.send(position, f"go perft {depth}")
    (total,) = gui.wait_for("Nodes searched: ")
    board = gui.session._position.board
    found = {line.split(": ")[0]: int(line.split(": ")[1])
             for line in gui.lines if ": " in line and line != total}
    assert int(total.split(": ")[1]) == leaves(board.copy(), depth)
    if depth > 0:
        assert set(found) == {move.uci() for move in board.legal_moves}
        assert sum(found.values()) == int(total.split(": ")[1])
    assert not any(line.startswith("bestmove") for line in gui.lines)


def test_stop_ends_a_long_perft(talk):
    gui = talk(model="")
    gui.send("go perft 20", "isready")
    assert gui.lines[-1] == "readyok"
    gui.send("stop", "go nodes 1")
    gui.wait_for("bestmove")
    assert not any(line.startswith("Nodes searched") for line in gui.lines)


def test_d_shows_the_position_during_a_search_too(talk):
    gui = talk()
    gui.send("position startpos moves e2e4 f7f6 d1h5", "go infinite")
    gui.lines.clear()
    gui.send("d")
    board = gui.session._position.board
    shown = [line for line in gui.lines if not line.startswith("info")]
    assert shown[:8] == str(board).splitlines()
    assert f"Fen: {board.fen()}" in shown
    assert "Checkers: h5" in shown
    gui.send("stop")
    gui.wait_for("bestmove")


def test_eval_is_the_networks_value(talk):
    gui = talk()
    gui.send("position startpos moves e2e4", "eval")
    (said,) = gui.wait_for("Final evaluation")
    words = said.split()
    wdl = [int(word) for word in words[words.index("wdl") + 1 : words.index("wdl") + 4]]
    assert sum(wdl) == 1000
    assert abs(float(words[2]) - (wdl[0] - wdl[2]) / 1000) <= 0.002
    gui.send("eval")
    assert set(gui.wait_for("Final evaluation", 2)) == {said}
    for position in (CHECKMATED, STALEMATED):
        gui.lines.clear()
        gui.send(position, "eval", "ucinewgame")
        assert [text for text in gui.strings() if "ended" in text]


def test_bench_counts_the_nodes_of_its_searches(talk):
    gui = talk(simulations=3)
    gui.send("bench", "ucinewgame")  # which waits for it
    figures = dict(line.split(": ") for line in gui.lines if ": " in line and "info" not in line)
    assert int(figures["Nodes searched"]) == 800
    assert int(figures["Nodes/second"]) > 0
    gui.lines.clear()
    gui.send("bench", "stop", "ucinewgame")
    assert not any(line.startswith("Nodes searched") for line in gui.lines)


@pytest.mark.parametrize("command", ["eval", "bench"])
def test_without_a_network_eval_and_bench_say_so(talk, command):
    gui = talk(model="")
    gui.send(command, "ucinewgame")
    assert any("no network" in text for text in gui.strings())
    assert gui.best("go nodes 1") != "(none)"


def test_a_go_right_after_stop_is_dropped_bug(model):
    loading = threading.Event()

    def load(_text):
        assert loading.wait(PATIENCE_S)
        return load_chess(str(model))

    gui = Gui(load, Options(model="slow", hash_mib=16))
    gui.send("go infinite", "stop")
    threading.Timer(0.3, loading.set).start()
    gui.send("position startpos moves e2e4", "go nodes 3")
    assert not any("ignored" in text for text in gui.strings())
    _, second = gui.wait_for("bestmove", 2)
    board = chess.Board()
    board.push_uci("e2e4")
    assert chess.Move.from_uci(second.split()[1]) in board.legal_moves
    gui.session.close()


def test_a_temperature_draws_moves(talk):
    gui = talk(temperature=5.0)
    moves = {gui.best("ucinewgame", "position startpos", "go nodes 60") for _ in range(12)}
    assert len(moves) > 1
    gui.send("setoption name Temperature value 1e-300")
    assert gui.best("go nodes 10") != "(none)"
    assert gui.best("setoption name Temperature value 50", MATE_IN_ONE, "go nodes 1000") == "a1a8"


def test_ticks_are_the_networks_own(talk, ordinary_model):
    gui = talk()
    gui.send("isready", "setoption name Ticks value 3", "isready")
    assert any("3 ticks" in text for text in gui.strings())
    gui.ask("go nodes 5")
    gui.lines.clear()
    gui.send(f"setoption name Model value {ordinary_model}", "isready")
    assert any("net.ticks" in text for text in gui.strings())
    assert gui.best("go nodes 5") != "(none)"


def test_a_model_that_cannot_be_had_leaves_the_one_before(talk, model, tmp_path):
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"nonsense")
    gui = talk()
    gui.send("isready")
    for text in ("nowhere", damaged, tmp_path, "a\0b", "x" * 5000):
        gui.lines.clear()
        gui.send(f"setoption name Model value {text}", "isready")
        assert len(gui.strings()) == 1
        assert gui.lines[-1] == "readyok"
        assert gui.best("go nodes 5") != "(none)"
        assert not any("NO NETWORK" in text for text in gui.strings())


def test_a_model_that_was_refused_is_tried_again_for_a_new_game_only(model):
    tried = []

    def load(text):
        tried.append(text)
        if tried.count("later") < 2 and text == "later":
            raise CorruptDataError("not there yet")
        return load_chess(str(model))

    gui = Gui(load, Options(model="later", hash_mib=16))
    gui.send("isready", "isready")
    gui.ask("go nodes 5")
    assert tried == ["later"]
    gui.send("ucinewgame", "isready")
    assert tried == ["later", "later"]
    gui.ask("go nodes 5")
    assert not any("NO NETWORK" in text for text in gui.strings())
    gui.session.close()


def test_a_device_that_is_not_here_is_told_and_the_engine_stays(talk):
    gui = talk(simulations=5)
    gui.send("isready", "setoption name Device value cuda:99", "isready")
    assert any("cuda:99" in text for text in gui.strings())
    assert nodes(gui.ask("go")[-2]) == "5"
    gui.send("setoption name Device value auto", "isready")
    assert nodes(gui.ask("go")[-2]) == "5"


def test_a_network_that_was_never_ready_says_why(talk):
    gui = talk(hash_mib=1, threads=60)
    assert gui.best("go nodes 5") in {move.uci() for move in chess.Board().legal_moves}
    (said,) = [text for text in gui.strings() if text.startswith("NO NETWORK")]
    assert "2 MiB" in said
    gui.ask("setoption name Threads value 1", "go nodes 5")
    assert not any("NO NETWORK" in text for text in gui.strings())


def test_a_search_that_fails_still_answers(talk):
    def load(text):
        if text == "gone":
            raise CorruptDataError("damaged on the way")
        raise RuntimeError("a bug")

    for text, said in (("gone", "damaged on the way"), ("bug", "RuntimeError: a bug")):
        gui = Gui(load, Options(model=text))
        assert gui.best("go nodes 5") in {move.uci() for move in chess.Board().legal_moves}
        assert any(said in heard for heard in gui.strings())
        gui.session.close()


def test_isready_ends_the_engine_where_preparing_fails_bug():
    def load(_text):
        raise RuntimeError("a bug")

    gui = Gui(load, Options(model="bug"))
    gui.send("isready")
    assert gui.lines[-1] == "readyok"
    assert any("RuntimeError: a bug" in text for text in gui.strings())
    gui.session.close()


def test_commands_are_read_while_a_network_loads(model):
    may_load = threading.Event()

    def load(_text):
        assert may_load.wait(PATIENCE_S)
        return load_chess(str(model))

    gui = Gui(load, Options(model="slow", hash_mib=16))
    assert gui.session.handle("isready")
    gui.send("setoption name MultiPV value 2", "uci")
    assert gui.lines[-1] == "uciok"
    assert "readyok" not in gui.lines
    may_load.set()
    assert not gui.session.handle("quit")
    gui.session.close()
    assert gui.lines[-1] == "readyok"


def test_the_end_of_input_is_quit_and_a_gui_that_goes_is_the_end(talk):
    gui = talk()
    gui.session.run(iter(["position startpos", "go infinite"]))
    assert gui.lines[-1].startswith("bestmove")
    gui = talk()
    gui.session.run(iter(["go nodes 3", "quit", "uci"]))
    assert "uciok" not in gui.lines

    def gone(_line):
        raise BrokenPipeError

    Session(get_game("chess"), load_chess, gone, Options()).run(itertools.repeat("uci"))
