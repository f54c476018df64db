"""Conversations: sessions of the UCI engine, in this process and another; answers of engines."""

import asyncio
import subprocess
import sys
from contextlib import suppress
from functools import cache

import chess
import chess.engine
import pytest
from damaged_inputs import (
    INPUTS,
    changed_bytes,
    changed_words,
    either,
    fuzz,
    scratch,
    text_of,
)
from hypothesis import HealthCheck, given, settings
from talk import PATIENCE_S, Gui
from test_fuzz_positions import GAME, UCI_WORDS, changed_uci_line, uci_lines

from chess_snn.api.network import Net
from chess_snn.campaign.models.model import Model
from chess_snn.errors import UsageError
from chess_snn.evaluation.engines.process import EngineProcess
from chess_snn.nets import NetConfig, build_network, save_network
from chess_snn.uci import Options
from chess_snn.uci.commands import parse_go, split_line
from chess_snn.uci.session import COMMANDS

MODEL = "untrained"
MOST_LINES = 40
MOST_HASH_MIB = 64
MOST_TURNS = 20
"""Turns of the event loop, in which an engine's next question comes, if any comes."""

_SESSIONS = (
    b"uci\nisready\nucinewgame\nposition startpos moves e2e4 e7e5\ngo nodes 3\nquit",
    b"setoption name MultiPV value 3\nposition fen 7k/8/8/8/8/8/8/K6Q w - - 0 1\ngo depth 2\n"
    b"position fen 7k/8/8/8/8/8/8/K6Q w - - 0 1 moves h1h7\ngo nodes 1",
    b"position startpos moves e2e4\ngo ponder wtime 100 btime 100\nponderhit\nstop\n"
    b"position startpos moves e2e4 e7e5 g1f3\ngo infinite\ngo searchmoves b8c6 movetime 5",
    b"setoption name Model value nowhere\nisready\nucinewgame\ngo nodes 1\n"
    b"setoption name Temperature value 1.5\nsetoption name UCI_ShowWDL value true\ngo mate 1",
    b"position startpos moves " + b"g1f3 g8f6 f3g1 f6g8 " * 3 + b"\ngo nodes 2",
    b"setoption name Precision value bf16\nsetoption name Ticks value 3\ngo nodes 1",
    b"d\neval\ngo perft 3\nbench\ngo fast\nposition startpos moves e2e4\nd\neval\ngo perft 1",
    b"position fen 8/8/8/8/8/8/8/8 w - - 0 1\ngo\nposition fen 7k/5Q2/8/8/8/8/8/K7 b - - 0 1\ngo",
)
_ENGINE_TALK = (
    b"id name Fake 1.0\nid author x\noption name Hash type spin default 16 min 1 max 64\nuciok\n"
    b"readyok\nreadyok\nreadyok\ninfo depth 1 score cp 0\nbestmove e2e4 ponder e7e5\n",
    b"uciok\nreadyok\nreadyok\nreadyok\nbestmove (none)\n",
    b"uciok\r\nreadyok\r\nreadyok\r\nreadyok\r\nbestmove 0000\r\n",
)
_ENGINE_WORDS = (
    b"id", b"name", b"option", b"type", b"uciok", b"readyok", b"bestmove", b"e2e4", b"e2e5",
    b"0000", b"(none)", b"NULL", b"info", b"\n", b"\nuciok\n", b"\nbestmove a1a1\n",
    b"x" * 70_000, b"\x07", b"\xff\xfe",
)


@cache
def network():
    return build_network(GAME.spec, NetConfig(blocks=1, channels=8), seed=1)


@cache
def model() -> Model:
    weights = scratch() / "engine.safetensors"
    save_network(weights, network())
    return Model(MODEL, weights, GAME.spec.name)


def load(text: str) -> Net:
    if text != MODEL:
        raise UsageError(f"{text!r} does not exist")
    return Net(model())


def ask(gui: Gui, line: str) -> bool:
    """Send a line, stop a search that it began, and check its move; False after ``quit``."""
    gui.session._end_search()
    gui.lines.clear()
    if not gui.session.handle(line):
        return False
    gui.send("stop", "isready")
    gui.wait_for("readyok")
    gui.session._end_search()
    if is_search(line):
        (answer,) = [said.split()[1] for said in gui.lines if said.startswith("bestmove")]
        board = gui.session._position.board
        legal = {move.uci() for move in board.legal_moves} or {"(none)", "0000"}
        assert answer in legal, f"{answer} in {board.fen()}"
    assert not any("the search failed" in text for text in gui.lines)
    return True


def is_search(line: str) -> bool:
    """Whether it asks for a move."""
    with suppress(UsageError):
        name, arguments = split_line(line, COMMANDS)
        return name == "go" and parse_go(arguments)[0].perft is None
    return False


def asks_for_much(line: str) -> bool:
    """Whether it asks for more memory or threads than a test should take."""
    words = line.lower().split()
    numbers = [word.replace("_", "").lstrip("+") for word in words]
    is_big = any(word.isdecimal() and int(word[:9]) > MOST_HASH_MIB for word in numbers)
    return is_big and not {"hash", "threads", "ticks"}.isdisjoint(words)


@pytest.mark.fault(20)
@fuzz(
    lambda: _SESSIONS,
    changed_words(*UCI_WORDS, *(b"\n%s\n" % line for line in b"\n".join(_SESSIONS).split(b"\n"))),
    share=0.3,
)
def test_uci_session(data):
    """Lines of a GUI, one after the other; then a search from the initial position works."""
    gui = Gui(load, Options(model=MODEL, hash_mib=1, simulations=2))
    try:
        lines = text_of(data).split("\n")[:MOST_LINES]
        if all(ask(gui, line) for line in lines if not asks_for_much(line)):
            for line in ("setoption name MultiPV value 1", "position startpos", "go nodes 2"):
                ask(gui, line)
    finally:
        gui.session.close()


class ScriptedEngine(EngineProcess):
    """An engine that says its lines one by one, whenever it is asked something, and then ends."""

    async def talk(self, said: bytes) -> str:
        """Its first move; its identity is known then."""
        self.connection_made(ScriptedTransport())
        saying = asyncio.ensure_future(self._say(said.splitlines(keepends=True)))
        try:
            await self.greet(PATIENCE_S)
            return await self.best_move(chess.Board(), chess.engine.Limit(nodes=2), PATIENCE_S)
        finally:
            await saying

    async def _say(self, lines: list[bytes]) -> None:
        for line in lines:
            for _ in range(MOST_TURNS):
                if self.command is not None:
                    break
                await asyncio.sleep(0)
            if self.returncode.done():
                return
            self.pipe_data_received(1, line)
        self._kill()

    def _kill(self) -> None:
        if not self.returncode.done():
            self.connection_lost(None)


class ScriptedTransport:
    """Stands for pipes and a process: reads nothing and has ended well."""

    def get_pipe_transport(self, fd: int) -> "ScriptedTransport":
        return self

    def write(self, data: bytes) -> None:
        pass

    def get_returncode(self) -> int:
        return 0


@fuzz(
    lambda: _ENGINE_TALK, either(changed_words(*_ENGINE_WORDS), changed_bytes(*_ENGINE_WORDS)),
    b"uciok\nready (none)\n\nreadyok\n\xefestmove (none)",
)
def test_engine(data):
    """An engine may say anything from its greeting to its first move."""

    async def talk() -> tuple[str, str]:
        engine = ScriptedEngine()
        answer = await engine.talk(data)
        return engine.identity, answer

    identity, answer = asyncio.run(talk())
    assert identity.isprintable()
    assert len(identity) <= 80
    state = GAME.parse_state(chess.STARTING_FEN)
    assert GAME.format_action(state, GAME.parse_action(state, answer)) == answer.strip()


def is_harmless(line: bytes) -> bool:
    """Whether it neither ends the process nor asks for more than a test should take."""
    text = line.decode("utf-8", "replace")  # as the engine reads it
    return {"quit", "hash", "threads", "model", "ticks"}.isdisjoint(text.lower().split())


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.fault(20)
def test_ten_thousand_malformed_lines_neither_crash_nor_hang_the_process(tmp_path):
    """It reads all of them, then still plays by the rules."""
    lines: list[bytes] = []

    @settings(
        max_examples=max(INPUTS, 10_000), derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(changed_uci_line(uci_lines()).map(lambda data: data.replace(b"\n", b" ")))
    def collect(line):
        if is_harmless(line):
            lines.extend((line[:20_000], b"stop"))

    collect()
    lines += [b"setoption name Temperature value 0", b"position startpos moves e2e4", b"go nodes 5"]
    save_network(tmp_path / "weights.safetensors", network())
    command = ["uci", "--model", str(tmp_path / "weights.safetensors"), "--simulations", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "chess_snn", *command], input=b"\n".join([*lines, b"quit\n"]),
        capture_output=True, timeout=3600, check=True,
    )
    said = done.stdout.decode()
    (notice,) = done.stderr.splitlines()
    assert b"loaded unchecked" in notice
    assert "the search failed" not in said
    answers = [line.split()[1] for line in said.splitlines() if line.startswith("bestmove")]
    assert len(answers) > 100, "too few lines asked for a search"
    board = chess.Board()
    board.push_uci("e2e4")
    assert chess.Move.from_uci(answers[-1]) in board.legal_moves
