"""Ten thousand malformed lines and positions to the real process, which then still plays."""

import random
import subprocess
import sys
import threading
from pathlib import Path
from queue import Empty, Queue

import chess
import pytest
from fuzzing import seeds_of
from position_targets import GAME
from talk_targets import _asks_for_much
from targets import TARGETS

from chess_snn.nets import NetConfig, build_network, save_network

ROOT = Path(__file__).parents[2]
NUM_LINES = 10_000
EACH = 50
"""Lines between two times that it must have read them all."""
PATIENCE_S = 300.0
NEVER = ("quit", "hash", "threads", "model", "ticks")
"""Words of lines that end it, or ask for more than a test should take."""


class Process:
    """The engine and what it says."""

    def __init__(self, model: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chess_snn", "uci", "--model", str(model), "--simulations", "2"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
        )
        self._said: Queue[str] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self._num_marks = 0
        self.answers = 0
        """How often it said ``bestmove``."""

    def _listen(self) -> None:
        for line in self._process.stdout:
            self._said.put(line.decode().rstrip("\n"))
        self._said.put("")

    def send(self, lines: list[bytes]) -> None:
        self._process.stdin.write(b"".join(line + b"\n" for line in lines))
        self._process.stdin.flush()

    def wait_for(self, start: str) -> str:
        while True:
            try:
                line = self._said.get(timeout=PATIENCE_S)
            except Empty:
                pytest.fail(f"no {start} within {PATIENCE_S:.0f} s")
            assert line, f"it ended: {self._process.stderr.read().decode()[-2000:]}"
            assert "the search failed" not in line
            assert "Traceback" not in line
            self.answers += line.startswith("bestmove")
            if line.startswith(start):
                return line

    def catch_up(self) -> None:
        """Wait until it has read all that was sent; some of that may have asked isready too."""
        self._num_marks += 1
        mark = f"mark{self._num_marks}"
        self.send([b"isready", f"setoption name {mark}".encode()])
        self.wait_for(f"info string unknown option '{mark}'")

    def end(self) -> None:
        self.send([b"quit"])
        assert self._process.wait(PATIENCE_S) == 0
        assert self._process.stderr.read() == b""

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def malformed_lines(count: int) -> list[bytes]:
    """Damaged lines; those that ask for a search are followed by a stop."""
    target, stream, lines = TARGETS["uci-line"], random.Random(7), []
    seeds = list(seeds_of(target))
    while len(lines) < count:
        data = target.mutate(stream, stream.choice(seeds), stream.choice(seeds))
        for line in data.split(b"\n"):
            text = line.decode("utf-8", "replace")  # as the engine reads it
            if not set(NEVER) & set(text.lower().split()) and not _asks_for_much(text):
                lines.append(line[:20_000])
    return lines[:count]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "weights.safetensors"
    save_network(path, build_network(GAME.spec, NetConfig(blocks=1, channels=8), seed=1))
    return path


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.fault(20)
def test_ten_thousand_malformed_lines_neither_crash_nor_hang_the_process(model):
    engine = Process(model)
    try:
        lines = malformed_lines(NUM_LINES)
        for first in range(0, NUM_LINES, EACH):
            for line in lines[first : first + EACH]:
                engine.send([line, b"stop"])
            engine.catch_up()
        assert engine.answers > NUM_LINES / 100, "too few of them asked for a search"
        assert plays_by_the_rules(engine)
        engine.end()
    finally:
        engine.kill()


def plays_by_the_rules(engine: Process) -> bool:
    """Whether it answers a position; first may come what it still had to say of another one."""
    board = chess.Board()
    board.push_uci("e2e4")
    engine.send([b"setoption name Temperature value 0"])
    for _ in range(3):
        engine.send([b"position startpos moves e2e4", b"go nodes 5"])
        if chess.Move.from_uci(engine.wait_for("bestmove").split()[1]) in board.legal_moves:
            return True
    return False
