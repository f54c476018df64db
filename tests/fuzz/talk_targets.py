"""Conversations: whole sessions of the UCI engine, and what other engines may say to us."""

import asyncio
import random
import threading
from functools import cache

import chess
import chess.engine
from fuzzing import ACCEPTED, REFUSED, Target, Verdict
from mutation import octets, one_of, words
from position_targets import GAME, UCI_WORDS, text_of

from chess_snn.errors import IllegalMoveError, UsageError
from chess_snn.evaluation.engines.process import EngineProcess
from chess_snn.nets import NetConfig, Network, build_network
from chess_snn.search import SearchSettings
from chess_snn.uci import LoadedModel, Options, Session

MODEL = "untrained"
PATIENCE_S = 120.0
"""Far beyond what any answer takes, on a busy machine too."""
MOST_LINES = 40
MOST_HASH_MIB = 64
MOST_TURNS = 20
"""Of the event loop, in which an engine's next question comes, if any comes."""
_GO = "go nodes 2"


class Gui:
    """A GUI that asks, hears, and stops every search."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._changed = threading.Condition()
        self.session = Session(
            GAME, _load_model, self._hear, Options(model=MODEL, hash_mib=1, simulations=2)
        )

    def ask(self, line: str) -> bool:
        """Send a line and wait until it was done; False after ``quit``."""
        before = self.session._search
        first = len(self.heard)
        if not self.session.handle(line):
            return False
        self.session.handle("stop")
        self.session.handle("isready")
        self._wait_for("readyok", first)
        if (search := self.session._search) is not before:
            (answer,) = self._wait_for("bestmove", first)
            search.join()
            _check_answer(self.session._position.board, answer)
        assert not any("the search failed" in text for text in self.heard[first:])
        return True

    def _hear(self, line: str) -> None:
        assert "\n" not in line
        with self._changed:
            self.heard.append(line)
            self._changed.notify_all()

    def _wait_for(self, start: str, first: int) -> list[str]:
        def found() -> list[str]:
            return [line for line in self.heard[first:] if line.startswith(start)]

        with self._changed:
            assert self._changed.wait_for(found, PATIENCE_S), f"no {start} within {PATIENCE_S} s"
            return found()


_MODEL_LOADED = "info string model "


def try_session(data: bytes) -> Verdict:
    """Lines of a GUI, one after the other; then a search from the initial position works."""
    gui, kinds = Gui(), set()
    try:
        for line in text_of(data).split("\n")[:MOST_LINES]:
            if _asks_for_much(line):
                continue
            first = len(gui.heard)
            if not gui.ask(line):
                kinds.add("quit")
                break
            kinds |= {
                text[:24] for text in gui.heard[first:]
                if text.startswith("info string") and not text.startswith(_MODEL_LOADED)
            }
        gui.ask("setoption name MultiPV value 1")
        gui.ask("position startpos")
        gui.ask(_GO)
    finally:
        gui.session.close()
    return Verdict(not kinds, frozenset(kinds))


def _asks_for_much(line: str) -> bool:
    """Whether it asks for more memory or threads than a test should take, which is no fault."""
    found = line.split()
    numbers = [word.replace("_", "").lstrip("+") for word in found]
    big = [word for word in numbers if word.isdecimal() and int(word[:9]) > MOST_HASH_MIB]
    return bool(big) and any(word.lower() in ("hash", "threads", "ticks") for word in found)


def _check_answer(board: chess.Board, answer: str) -> None:
    move = answer.split()[1]
    legal = {move.uci() for move in board.legal_moves}
    assert move in legal if legal else move in ("(none)", "0000"), f"{answer} in {board.fen()}"


def _load_model(text: str) -> LoadedModel:
    if text != MODEL:
        raise UsageError(f"{text!r} does not exist")
    return LoadedModel(MODEL, _network(), "fp32", SearchSettings())


@cache
def _network() -> Network:
    return build_network(GAME.spec, NetConfig(blocks=1, channels=8), seed=1)


class Mouthpiece:
    """In place of pipes and a process: a transport that reads nothing and has ended well."""

    def get_pipe_transport(self, fd: int) -> "Mouthpiece":
        return self

    def write(self, data: bytes) -> None:
        pass

    def get_returncode(self) -> int:
        return 0


class ScriptedEngine(EngineProcess):
    """An engine that says its lines one by one, whenever it is asked something, and then ends."""

    async def talk(self, said: bytes) -> str:
        """Its identity is known then; returns its first move."""
        self.connection_made(Mouthpiece())
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


def try_engine(data: bytes) -> Verdict:
    """What an engine says from its greeting to its first move."""

    async def talk() -> tuple[str, str]:
        engine = ScriptedEngine()
        answer = await engine.talk(data)
        return engine.identity, answer

    identity, answer = asyncio.run(talk())
    assert identity.isprintable()
    assert len(identity) <= 80
    state = GAME.parse_state(chess.STARTING_FEN)
    try:
        action = GAME.parse_action(state, answer)
    except IllegalMoveError:
        return REFUSED
    assert GAME.format_action(state, action) == answer.strip()
    return ACCEPTED


SESSIONS = (
    "uci\nisready\nucinewgame\nposition startpos moves e2e4 e7e5\ngo nodes 3\nquit",
    "setoption name MultiPV value 3\nposition fen 7k/8/8/8/8/8/8/K6Q w - - 0 1\ngo depth 2\n"
    "position fen 7k/8/8/8/8/8/8/K6Q w - - 0 1 moves h1h7\ngo nodes 1",
    "position startpos moves e2e4\ngo ponder wtime 100 btime 100\nponderhit\nstop\n"
    "position startpos moves e2e4 e7e5 g1f3\ngo infinite\ngo searchmoves b8c6 movetime 5",
    "setoption name Model value nowhere\nisready\nucinewgame\ngo nodes 1\n"
    "setoption name Temperature value 1.5\nsetoption name UCI_ShowWDL value true\ngo mate 1",
    "position startpos moves " + "g1f3 g8f6 f3g1 f6g8 " * 3 + "\ngo nodes 2",
    "setoption name Precision value bf16\nsetoption name Ticks value 3\ngo nodes 1",
    "position fen 8/8/8/8/8/8/8/8 w - - 0 1\ngo\nposition fen 7k/5Q2/8/8/8/8/8/K7 b - - 0 1\ngo",
)
ENGINE_TALK = (
    b"id name Fake 1.0\nid author x\noption name Hash type spin default 16 min 1 max 64\nuciok\n"
    b"readyok\nreadyok\nreadyok\ninfo depth 1 score cp 0\nbestmove e2e4 ponder e7e5\n",
    b"uciok\nreadyok\nreadyok\nreadyok\nbestmove (none)\n",
    b"uciok\r\nreadyok\r\nreadyok\r\nreadyok\r\nbestmove 0000\r\n",
)
ENGINE_WORDS = (
    b"id", b"name", b"option", b"type", b"uciok", b"readyok", b"bestmove", b"e2e4", b"e2e5",
    b"0000", b"(none)", b"NULL", b"info", b"\n", b"\nuciok\n", b"\nbestmove a1a1\n",
    b"x" * 70_000, b"\x07", b"\xff\xfe",
)


def _change_session(stream: random.Random, data: bytes, other: bytes) -> bytes:
    """Lines dropped, doubled, moved and taken from another session; words of them changed."""
    lines, others = data.split(b"\n"), other.split(b"\n")
    for _ in range(stream.choice((1, 2, 3))):
        at = stream.randrange(len(lines))
        kind = stream.randrange(5)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(at, stream.choice(others))
        elif kind == 2:
            to = stream.randrange(len(lines))
            lines[at], lines[to] = lines[to], lines[at]
        else:
            lines[at] = _CHANGE_LINE(stream, lines[at], stream.choice(others))
    return b"\n".join(lines)


_CHANGE_LINE = one_of((3, words(UCI_WORDS)), (1, octets(UCI_WORDS)))

TARGETS = (
    Target(
        "uci-session", try_session, _change_session,
        lambda: [session.encode() for session in SESSIONS], weight=15,
    ),
    Target(
        "engine", try_engine, one_of((2, words(ENGINE_WORDS)), (1, octets(ENGINE_WORDS))),
        lambda: ENGINE_TALK, weight=70,
    ),
)
