"""``chess-snn play`` with a scripted person at the terminal."""

import io
import os
import re
import subprocess
import sys

import chess
import chess.pgn
import numpy as np
import pytest
from small_campaigns import make_networks, make_weights
from terminal import Terminal

from chess_snn.cli.drawing import draw_board
from chess_snn.cli.terminal_game import ChessGame, parse_move
from chess_snn.errors import EngineError, IllegalMoveError, UsageError
from chess_snn.evaluation.players import FORFEIT, VOID
from chess_snn.games import get_game

GAME = get_game("chess")
MATE_IN_ONE = "6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1"


@pytest.fixture
def play(chess_snn, monkeypatch):
    """Play with these inputs; returns what was shown."""
    def run(typed, *arguments):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in typed)))
        done = chess_snn("play", *(arguments or ("--model", "greedy")), "--ascii")
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def saved(path):
    with path.open() as file:
        game = chess.pgn.read_game(file)
    assert not game.errors
    return game


def test_a_game_is_played_and_saved(play, tmp_path):
    shown = play(["e4", "g1f3", "save out.pgn", "quit"])
    assert shown.count("greedy plays ") == 2
    game = saved(tmp_path / "out.pgn")
    moves = [move.uci() for move in game.mainline_moves()]
    assert len(moves) == 4
    assert (moves[0], moves[2]) == ("e2e4", "g1f3")
    assert (game.headers["White"], game.headers["Black"]) == ("human", "greedy")
    assert game.headers["Result"] == "*"


def test_black_waits_for_the_first_move(play):
    shown = play([], "--model", "random", "--color", "black")
    assert shown.index("\n1  ") < shown.index("\n8  ")


def test_a_mate_ends_the_game_and_can_be_taken_back(play, tmp_path):
    shown = play(
        ["Ra8", "e4", "save won.pgn", "takeback", "Ra7", "save on.pgn"],
        "--model", "greedy", "--fen", MATE_IN_ONE,
    )
    assert "checkmate" in shown
    game = saved(tmp_path / "won.pgn")
    assert (game.headers["Result"], game.headers["FEN"]) == ("1-0", MATE_IN_ONE)
    assert saved(tmp_path / "on.pgn").headers["Result"] == "*"


def test_resigning_and_thinking_better_of_it(play, tmp_path):
    shown = play(["d4", "resign", "resign", "save lost.pgn", "takeback", "d4"])
    assert saved(tmp_path / "lost.pgn").headers["Termination"] == "resignation"
    assert shown.count("greedy plays ") == 2
    shown = play(["resign", "takeback", "e4"])
    assert "greedy plays " in shown


@pytest.mark.parametrize(("fen", "move", "ending"), [
    ("7k/8/8/8/8/8/1R6/K7 w - - 99 90", "Rb3", "fifty moves"),
    ("k7/8/8/8/8/8/1r6/K7 w - - 0 1", "Kxb2", "insufficient material"),
    ("k7/8/1K6/8/8/8/8/2Q5 w - - 0 1", "Qc7", "stalemate"),
])
def test_draws_are_taken(play, fen, move, ending):
    shown = play([move], "--model", "random", "--fen", fen)
    assert ending in shown


class Scripted:
    """Plays the moves it is given."""

    name = "scripted"

    def __init__(self, *moves):
        self._moves = list(moves)

    def choose(self, batch, keys, plies):
        return np.array([GAME.parse_action(batch.state[0], self._moves.pop(0))], np.int16)


def make_table(opponent):
    return ChessGame(GAME, GAME.parse_state(chess.STARTING_FEN), opponent, lambda _: None,
                     seed=0, ascii_only=True)


def test_the_third_time_is_a_draw():
    table = make_table(Scripted("g8f6", "f6g8", "g8f6", "f6g8"))
    for move in ("Nf3", "Ng1", "Nf3", "Ng1"):
        assert table.result == "*"
        table.obey(move)
    assert (table.is_over, table.result) == (True, "1/2-1/2")
    with pytest.raises(UsageError):
        table.obey("hint")
    table.obey("takeback")
    assert not table.is_over


@pytest.mark.parametrize("fault", [FORFEIT, VOID])
def test_a_move_that_an_engine_does_not_answer_is_taken_back(fault):
    class Failing:
        name = "failing"

        def choose(self, batch, keys, plies):
            return np.full(len(batch), fault, np.int16)

    table = make_table(Failing())
    for typed in ("e4", "hint"):
        with pytest.raises(EngineError, match="failing"):
            table.obey(typed)
        assert table.board == chess.Board()


def test_a_hint_is_a_legal_move_and_changes_nothing(play):
    shown = play(["hint", "e4", "hint"])
    hints = [line for line in shown.splitlines() if "would play" in line]
    assert len(hints) == 2
    assert chess.Board().parse_san(hints[0].split("would play ")[1])


@pytest.mark.parametrize("typed", [
    "Ke2", "e2e5", "--", "0000", "Z0", "", "\x1b[A", "help", "takeback", "save", "save x.txt",
    "save folder.pgn", "save no\0where.pgn", "save ~nobody-here/x.pgn",
])
def test_anything_may_be_typed(play, tmp_path, typed):
    (tmp_path / "folder.pgn").mkdir()
    assert play([typed, "e4"]).count("greedy plays ") == 1


def test_ctrl_c_leaves_cleanly(chess_snn, monkeypatch):
    def interrupted(prompt):
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupted)
    done = chess_snn("play", "--model", "random", "--ascii")
    assert done.returncode == 0
    assert done.stderr == ""


def test_a_network_plays_with_its_budget(play, tmp_path, home):
    make_weights(tmp_path / "net.safetensors")
    shown = play(["e4"], "--model", "net.safetensors", "--simulations", 8)
    assert "net.safetensors:8 plays " in shown
    make_networks(home / "campaigns" / "mine", generations=(2,))
    mine = str(home / "campaigns" / "mine")
    assert f"{mine}@2:0 plays " in play(["e4"], "--model", mine, "--simulations", 0)


def test_without_a_model_the_shipped_network_plays(play):
    assert "shipped/chess:8 plays " in play(["e4"], "--simulations", 8)


def test_boards_are_drawn_from_both_sides():
    board = chess.Board()
    board.push_san("e4")
    white = draw_board(board, chess.WHITE, ascii_only=True).splitlines()
    assert white[0] == "8   r  n  b  q  k  b  n  r "
    assert white[4] == "4   .  .  .  . (P) .  .  . "
    assert white[8] == "    a  b  c  d  e  f  g  h "
    black = draw_board(board, chess.BLACK, ascii_only=False).splitlines()
    assert black[0] == "1   ♖  ♘  ♗  ♔  ♕  ♗  ♘  ♖ "
    assert black[8] == "    h  g  f  e  d  c  b  a "


@pytest.mark.parametrize(("text", "uci"), [
    ("O-O", "e1g1"), ("0-0-0", "e1c1"), ("e1g1", "e1g1"), ("Kd2", "e1d2"), ("Rb1", "a1b1"),
    ("bxc8=N", "b7c8n"), ("b7b8q", "b7b8q"), ("b8=R+", "b7b8r"), ("c4", "c2c4"),
])
def test_moves_are_read_as_people_and_engines_write_them(text, uci):
    board = chess.Board("r1b1k2r/1P6/8/8/8/8/2P5/R3K2R w KQkq - 0 1")
    assert parse_move(board, text).uci() == uci


def test_a_move_of_several_pieces_must_say_which():
    with pytest.raises(IllegalMoveError):
        parse_move(chess.Board("4k3/8/8/8/8/8/4K3/R6R w - - 0 1"), "Rd1")


@pytest.mark.slow
def test_bytes_that_are_no_text_are_no_move_bug(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "chess_snn", "play", "--model", "random", "--ascii"],
        input=b"\xff\xe9\nquit\n", capture_output=True, timeout=120, check=False, cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": "utf-8:strict"},
    )
    assert done.returncode == 0, done.stderr
    assert b"xff" in done.stdout


# ``chess-snn play --game 2048``: by lines, and by keys in a real terminal.


ALMOST_OVER = "2 4 8 16/4 8 16 32/8 16 32 64/2 2 4 8"
OVER = "2 4 8 16/4 8 16 32/8 16 32 64/16 2 4 8"
STATUS = re.compile(r"score ([0-9,]+) +largest tile ([0-9,]+) +([0-9,]+) moves?\b")


@pytest.fixture
def play_2048(play):
    """Play 2048 with these lines; returns what was shown."""
    def run(typed, *arguments):
        return play(typed, "--game", "2048", "--seed", 7, *arguments)

    return run


def facts(shown):
    """(score, largest tile, moves) of every board that was shown."""
    return [tuple(int(number.replace(",", "")) for number in found)
            for found in STATUS.findall(shown)]


def test_a_game_is_played_with_words_and_letters(play_2048):
    shown = play_2048(["left", "j", "W", "quit"])
    assert [moves for _, _, moves in facts(shown)] == [0, 1, 2, 3]
    assert "| " in shown


def test_the_same_seed_and_moves_make_the_same_game(play_2048):
    assert play_2048(["auto 40"]) == play_2048(["auto 40"])
    assert play_2048(["auto 40"]) != play_2048(["auto 40"], "--seed", 8)


def test_a_move_taken_back_and_played_again_changes_nothing(play_2048):
    shown = play_2048(["auto 20", "left", "takeback", "down", "takeback", "left", "takeback"])
    boards = re.findall(r"(?s)(\+-.*?score[^\n]*)", shown)
    assert boards[2] == boards[6] != boards[4]
    assert boards[1] == boards[3] == boards[5] == boards[7]


def test_a_hint_of_2048_is_a_legal_move(play_2048):
    shown = play_2048(["hint", "board"])
    (hint,) = re.findall(r"expectimax:2 would play (\w+)", shown)
    assert hint in {"left", "up", "right", "down"}
    assert [moves for _, _, moves in facts(shown)] == [0, 0]


@pytest.mark.parametrize("adviser", ["random", "greedy", "expectimax:1"])
def test_a_named_player_plays_on(play_2048, adviser):
    shown = play_2048(["auto 12", "auto 3"], "--model", adviser)
    assert [moves for _, _, moves in facts(shown)] == [0, 12, 15]
    assert f"{adviser} plays " in shown


def test_the_game_ends_and_can_be_gone_on_with(play_2048):
    shown = play_2048(
        ["auto", "hint", "auto", "left", "takeback", "hint"], "--fen", ALMOST_OVER,
    )
    begin, end, before = (moves for _, _, moves in facts(shown))
    assert begin == 0 < before == end - 1
    assert shown.count("expectimax:2 would play") == 1
    assert facts(play_2048(["left"], "--fen", OVER))[-1][2] == 0


@pytest.mark.parametrize("typed", [
    "north", "up up", "auto x", "auto 0", "auto -1", "[bold]", "\x1b[A", "", "help", "2@a1",
    "takeback",
])
def test_anything_may_be_typed_in_2048(play_2048, typed):
    assert facts(play_2048([typed, "left"]))[-1][2] == 1


def test_a_network_decides_the_game(play, tmp_path):
    make_weights(tmp_path / "tiles.safetensors", game="2048")
    shown = play(["auto 5"], "--model", "tiles.safetensors", "--simulations", 0, "--seed", 1)
    assert "tiles.safetensors:0 plays " in shown
    assert facts(shown)[-1][2] == 5


PLAY_2048 = ("play", "--game", "2048", "--seed", "7")


def test_keys_in_a_terminal(tmp_path):
    with Terminal(tmp_path, *PLAY_2048) as terminal:
        terminal.wait_for("0 moves")
        terminal.press("\x1b[D")
        terminal.wait_for("1 move")
        terminal.press("\x1bOB")  # as terminals write arrows in their other mode
        terminal.wait_for("2 moves")
        terminal.press("u")
        terminal.wait_for("1 move")
        terminal.press("t")
        terminal.wait_for("expectimax:2 would play (left|up|right|down)")
        terminal.press("x\x1b[5~")
        terminal.press("p")
        terminal.wait_for(" 9 moves")
        terminal.press("\x1b[D")  # stops and does not move
        terminal.press("q")
        assert terminal.end() == 0
        assert "Traceback" not in terminal.screen


@pytest.mark.parametrize("leave", [pytest.param("press", marks=pytest.mark.slow), "interrupt"])
def test_ctrl_d_and_ctrl_c_leave_the_terminal_as_it_was(tmp_path, leave):
    with Terminal(tmp_path, *PLAY_2048) as terminal:
        terminal.wait_for("0 moves")
        if leave == "press":
            terminal.press("\x04")
        else:
            terminal.press("p")
            terminal.wait_for(" 3 moves")
            terminal.interrupt()
        assert terminal.end() == 0
        assert "Traceback" not in terminal.screen
