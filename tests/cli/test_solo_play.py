"""``chess-snn play --game 2048``: by lines, and by keys in a real terminal."""

import codecs
import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time

import pytest
from small_campaigns import make_weights

from chess_snn.campaign.store.naming import HOME_VARIABLE

ALMOST_OVER = "2 4 8 16/4 8 16 32/8 16 32 64/2 2 4 8"
OVER = "2 4 8 16/4 8 16 32/8 16 32 64/16 2 4 8"
STATUS = re.compile(r"score ([0-9,]+) +largest tile ([0-9,]+) +([0-9,]+) moves")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def play(chess_snn, monkeypatch):
    """Play 2048 with these lines; returns what was shown."""
    def run(typed, *arguments):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in typed)))
        done = chess_snn("play", "--game", "2048", "--seed", 7, "--ascii", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def facts(shown):
    """(score, largest tile, moves) of every board that was shown."""
    return [tuple(int(number.replace(",", "")) for number in found)
            for found in STATUS.findall(shown)]


def test_a_game_is_played_with_words_and_letters(play):
    shown = play(["left", "j", "W", "quit"])
    assert [moves for _, _, moves in facts(shown)] == [0, 1, 2, 3]
    assert "| " in shown


def test_the_same_seed_and_moves_make_the_same_game(play):
    assert play(["auto 40"]) == play(["auto 40"])
    assert play(["auto 40"]) != play(["auto 40"], "--seed", 8)


def test_a_move_taken_back_and_played_again_changes_nothing(play):
    shown = play(["auto 20", "left", "takeback", "down", "takeback", "left", "takeback"])
    boards = re.findall(r"(?s)(\+-.*?score[^\n]*)", shown)
    assert boards[2] == boards[6] != boards[4]
    assert boards[1] == boards[3] == boards[5] == boards[7]
    assert "nothing to take back" in play(["takeback"])


def test_a_hint_is_a_legal_move_and_changes_nothing(play):
    shown = play(["hint", "board"])
    (hint,) = re.findall(r"expectimax:2 would play (\w+)", shown)
    assert hint in {"left", "up", "right", "down"}
    assert [moves for _, _, moves in facts(shown)] == [0, 0]


@pytest.mark.parametrize("adviser", ["random", "greedy", "expectimax:1"])
def test_a_named_player_plays_on(play, adviser):
    shown = play(["auto 12", "auto 3"], "--model", adviser)
    assert [moves for _, _, moves in facts(shown)] == [0, 12, 15]
    assert f"{adviser} plays " in shown


def test_the_game_ends_and_can_be_gone_on_with(play):
    shown = play(
        ["auto", "hint", "auto", "left", "takeback", "hint"], "--fen", ALMOST_OVER,
    )
    assert "the game is over: no moves" in shown
    assert "there is nothing to play" in shown
    assert "so 'left' cannot be played" in shown
    assert shown.count("expectimax:2 would play") == 1
    assert "the game is over" in play([], "--fen", OVER)


@pytest.mark.parametrize("typed", [
    "north", "up up", "auto x", "auto 0", "auto -1", "[bold]", "\x1b[A", "", "help", "2@a1",
])
def test_anything_may_be_typed(play, typed):
    assert facts(play([typed, "left"]))[-1][2] == 1


def test_a_network_decides_the_game(chess_snn, monkeypatch, tmp_path):
    make_weights(tmp_path / "tiles.safetensors", game="2048")
    monkeypatch.setattr(sys, "stdin", io.StringIO("auto 5\n"))
    done = chess_snn("play", "--model", "tiles.safetensors", "--simulations", 0, "--seed", 1)
    assert done.returncode == 0, done.stderr
    assert "tiles.safetensors:0 plays " in done.stdout
    assert facts(done.stdout)[-1][2] == 5


class Terminal:
    """The command on a terminal of its own, with what it has written."""

    def __init__(self, folder, *arguments):
        self.main, self.other = pty.openpty()
        termios.tcsetwinsize(self.other, (30, 100))
        self.modes = termios.tcgetattr(self.other)
        self.screen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chess_snn", "play", "--game", "2048", "--seed", "7",
             *arguments],
            stdin=self.other, stdout=self.other, stderr=self.other, cwd=folder,
            env=os.environ | {"TERM": "xterm-256color"}, start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self.main)
        os.close(self.other)

    def wait_for(self, pattern):
        """Read until ``pattern`` has been written since the last wait."""
        end = time.monotonic() + 100
        while (found := re.search(pattern, self.screen)) is None:
            assert time.monotonic() < end, self.screen
            if select.select([self.main], [], [], 0.1)[0]:
                self.screen += self._decoder.decode(os.read(self.main, 1 << 16))
        self.screen = self.screen[found.end():]
        return found

    def press(self, keys):
        os.write(self.main, keys.encode())

    def interrupt(self):
        self._process.send_signal(signal.SIGINT)

    def end(self):
        """The exit code, once the terminal has been left as it was found."""
        while self._process.poll() is None:
            if select.select([self.main], [], [], 0.1)[0]:
                self.screen += self._decoder.decode(os.read(self.main, 1 << 16))
        assert termios.tcgetattr(self.other) == self.modes
        return self._process.returncode


def test_keys_in_a_terminal(tmp_path):
    with Terminal(tmp_path) as terminal:
        terminal.wait_for("0 moves")
        terminal.press("\x1b[D")
        terminal.wait_for("1 moves")
        terminal.press("\x1bOB")  # as terminals write arrows in their other mode
        terminal.wait_for("2 moves")
        terminal.press("u")
        terminal.wait_for("1 moves")
        terminal.press("t")
        terminal.wait_for("expectimax:2 would play (left|up|right|down)")
        terminal.press("x\x1b[5~")
        terminal.wait_for("'x' is not a move here")
        terminal.press("p")
        terminal.wait_for(" 9 moves")
        terminal.press("\x1b[D")  # stops and does not move
        terminal.press("q")
        assert terminal.end() == 0
        assert "Traceback" not in terminal.screen


@pytest.mark.parametrize("leave", ["press", "interrupt"])
def test_ctrl_d_and_ctrl_c_leave_the_terminal_as_it_was(tmp_path, leave):
    with Terminal(tmp_path) as terminal:
        terminal.wait_for("0 moves")
        if leave == "press":
            terminal.press("\x04")
        else:
            terminal.press("p")
            terminal.wait_for(" 3 moves")
            terminal.interrupt()
        assert terminal.end() == 0
        assert "Traceback" not in terminal.screen
