"""The real process with python-chess as its GUI."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import chess
import chess.engine
import pytest

from chess_snn.cli.main import main

REPOSITORY = Path(__file__).parents[2]
PATIENCE_S = 240
STOPS = 10


def command(*arguments):
    return [sys.executable, "-m", "chess_snn", "uci", *map(str, arguments)]


@pytest.fixture(scope="module")
def engine(model):
    engine = chess.engine.SimpleEngine.popen_uci(
        command("--model", model), timeout=PATIENCE_S, cwd=REPOSITORY
    )
    engine.configure({"UCI_ShowWDL": True, "Hash": 16})
    engine.ping()
    yield engine
    engine.quit()


@pytest.mark.parametrize("limit", [
    chess.engine.Limit(nodes=30),
    pytest.param(chess.engine.Limit(time=0.2), marks=pytest.mark.slow),
    chess.engine.Limit(white_clock=2, black_clock=2, remaining_moves=5),
])
def test_it_plays_itself_with_every_kind_of_limit(engine, limit):
    board, game = chess.Board(), object()
    for _ in range(12):
        result = engine.play(board, limit, info=chess.engine.INFO_ALL, game=game)
        assert result.move in board.legal_moves
        assert result.info["nodes"] >= 0
        assert "score" in result.info
        board.push(result.move)


def test_analysis_with_several_lines_stops_when_told(engine):
    board = chess.Board()
    with engine.analysis(board, multipv=3) as analysis:
        for info in analysis:
            if info.get("multipv") == 3 and "pv" in info:
                break
        analysis.stop()
        best = analysis.wait()
    assert best.move in board.legal_moves
    lines = analysis.multipv
    assert len(lines) == 3
    assert len({info["pv"][0] for info in lines}) == 3
    for info in lines:
        assert info["wdl"].relative.total() == 1000
        replay = board.copy()
        for move in info["pv"]:
            assert move in replay.legal_moves
            replay.push(move)


def test_stop_is_answered_within_100_ms(engine):
    """The fastest of ten: other programs may have the processor for a while."""
    delays_s, board = [], chess.Board()
    for _ in range(STOPS):
        with engine.analysis(board) as analysis:
            analysis.get()  # it searches
            time.sleep(0.1)
            told_s = time.perf_counter()
            analysis.stop()
            best = analysis.wait()
            delays_s.append(time.perf_counter() - told_s)
        board.push(best.move)
    assert min(delays_s) < 0.1, delays_s


@pytest.mark.parametrize("line", ["go perft 3", "d", "eval", "bench"])
def test_python_chess_plays_on_after_a_command_from_elsewhere(engine, line):
    engine.ping()
    engine.protocol.loop.call_soon_threadsafe(engine.protocol.send_line, line)
    board = chess.Board()
    for _ in range(2):
        result = engine.play(board, chess.engine.Limit(nodes=3), game=object())
        assert result.move in board.legal_moves
        board.push(result.move)


def test_pondering_is_hit_and_missed(engine):
    board, game = chess.Board(), object()
    limit = chess.engine.Limit(white_clock=3, black_clock=3, white_inc=0.1, black_inc=0.1)
    for hit in (True, False, True):
        result = engine.play(board, limit, ponder=True, game=game)
        board.push(result.move)
        others = [move for move in board.legal_moves if move != result.ponder]
        board.push(result.ponder if hit and result.ponder else others[0])
    assert engine.play(board, limit, game=game).move in board.legal_moves


def converse(lines, *arguments):
    """Send whole input at once; the process must end by itself."""
    return subprocess.run(
        command(*arguments), input=lines, capture_output=True, timeout=PATIENCE_S, check=False,
        cwd=REPOSITORY,
    )


@pytest.mark.slow
def test_the_end_of_input_ends_the_process(model):
    done = converse(b"uci\n\xff\xfe\x00 nonsense\nposition startpos\nisready\ngo infinite\n",
                    "--model", model)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert {"uciok", "readyok"} <= set(lines)
    assert lines[-1].startswith("bestmove ")
    assert done.stderr == b""


@pytest.mark.parametrize("encoding", [
    "utf-8-sig", pytest.param("utf-16", marks=pytest.mark.slow),
])
def test_a_byte_order_mark_hides_the_first_command_bug(encoding):
    done = converse("uci\r\nposition startpos\r\ngo perft 2\r\nquit\r\n".encode(encoding),
                    "--model", "")
    lines = done.stdout.decode().splitlines()
    assert "uciok" in lines
    assert lines[-1] == "Nodes searched: 400"
    assert not any("unknown" in line for line in lines)
    assert done.stderr == b""


@pytest.mark.parametrize(("arguments", "reason"), [
    (("--model", "nowhere"), "'nowhere' does not exist"),
    (("--simulations", 0), "Simulations must be >= 1"),
    (("--threads", -1), "Threads must be >= 1"),
    (("--device", "cuda:99"), "device cuda:99 is not here"),
])
def test_bad_arguments_are_one_line(arguments, reason, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["chess-snn", "uci", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr()
    (line,) = told.err.splitlines()
    assert reason in line
    assert told.out == ""


# Whole games against Stockfish.


NUM_GAMES = 2


def is_here(program):
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/games") is not None


def find_stockfish():
    if not is_here("stockfish"):
        pytest.skip("Stockfish is not installed (make stockfish)")
    return shutil.which("stockfish", path=f"{os.environ['PATH']}:/usr/games")


@pytest.mark.slow
@pytest.mark.timeout(700)
def test_games_under_python_chess(model):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "uci", "--part", "games", "--model", str(model),
         "--opponent", find_stockfish(), "--nodes", "20", "--games", str(NUM_GAMES),
         "--clock-s", "10"],
        capture_output=True, text=True, timeout=600, check=False, cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(line.startswith("game ") for line in done.stderr.splitlines()) == NUM_GAMES
