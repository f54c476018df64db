"""The conversation with a GUI: a line in, the lines it asks for out.

No line raises an exception or blocks the session. A malformed line gets an ``info string`` as its
answer and changes nothing.
"""

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Final

from chess_snn import __version__
from chess_snn.errors import ChessSnnError
from chess_snn.games.base import Game
from chess_snn.types import LogFn
from chess_snn.uci.commands import parse_go, parse_option, parse_position, split_line
from chess_snn.uci.engine import Engine, FindModel
from chess_snn.uci.limits import Limits
from chess_snn.uci.options import Options, declare, set_option
from chess_snn.uci.position import Position
from chess_snn.uci.searching import RunningSearch

_LONGEST_LINE: Final = 500
_MOST_FAULTS: Final = 3


class Session:
    """One engine and its GUI. Call :meth:`run`, or :meth:`close` at the end."""

    def __init__(
        self, game: Game, find_model: FindModel, tell: LogFn, options: Options
    ) -> None:
        """``tell`` takes one line to the GUI; an OSError it raises means that the GUI has gone."""
        self._game = game
        self._output = _Output(tell)
        self._engine = Engine(game, find_model, self._output.tell)
        self._defaults = self._options = options
        self._position = Position(game)
        self._refused = ""
        self._is_new_game = False
        self._search: RunningSearch | None = None

    def run(self, lines: Iterable[str]) -> None:
        """Handle ``lines`` until ``quit``, their end, or the GUI's; then close."""
        try:
            for line in lines:
                if not self.handle(line) or self._output.is_cut:
                    break
        finally:
            self.close()

    def handle(self, line: str) -> bool:
        """Do what ``line`` asks; False after ``quit``."""
        try:
            name, arguments = split_line(line)
            self._do(name, arguments)
        except ChessSnnError as error:
            self._say(str(error))
            return True
        return name != "quit"

    def close(self) -> None:
        """End a running search with its ``bestmove``, and the engine's threads."""
        if self._search is not None:
            self._search.orders.stop()
            self._search.join()
        self._engine.close()

    def _do(self, name: str, arguments: str) -> None:
        match name:
            case "uci":
                self._introduce()
            case "isready":
                self._answer_ready()
            case "ucinewgame":
                self._begin_game()
            case "setoption":
                self._options = set_option(self._options, *parse_option(arguments))
            case "position":
                self._set_position(*parse_position(arguments))
            case "go":
                self._go(*parse_go(arguments))
            case "stop":
                self._stop()
            case "ponderhit":
                self._ponderhit()

    def _introduce(self) -> None:
        self._output.tell(f"id name chess-snn {__version__}")
        self._output.tell("id author the chess-snn developers")
        for declaration in declare(self._defaults):
            self._output.tell(declaration)
        self._output.tell("uciok")

    def _answer_ready(self) -> None:
        if not self._is_searching():
            self._forget_the_last_game()
            try:
                self._engine.prepare(self._options)
            except Exception as error:  # noqa: BLE001 -- who asked waits for readyok, come what may
                self._say(f"the network could not be prepared: {type(error).__name__}: {error}")
            if not self._options.model:
                self._say("no network yet: setoption name Model value PATH, or start with --model")
        self._output.tell("readyok")

    def _begin_game(self) -> None:
        self._is_new_game = True
        self._position, self._refused = Position(self._game), ""

    def _set_position(self, fen: str | None, moves: tuple[str, ...]) -> None:
        try:
            self._position = Position.after(self._game, fen, moves)
        except ChessSnnError as error:
            self._refused = str(error)
            self._say(f"position refused, the one before stays: {error}")
        else:
            self._refused = ""

    def _go(self, limits: Limits, faults: Sequence[str]) -> None:
        start_s = time.monotonic()
        if self._search is not None:
            if self._is_searching() and not self._search.orders.is_stopped:
                self._say("go ignored: a search is running; stop it first")
                return
            self._search.join()  # a stopped one answers after its last wave
        for fault in faults[:_MOST_FAULTS]:
            self._say(fault)
        if self._refused:
            self._say(
                "searching the last valid position, "
                f"{self._position.board.fen()}; refused was: {self._refused}"
            )
        self._forget_the_last_game()
        self._search = RunningSearch(
            self._engine, self._position, limits, self._options, start_s, self._output.tell
        )

    def _forget_the_last_game(self) -> None:
        """What ``ucinewgame`` asked for, which may have come while a search was running."""
        if self._is_new_game:
            self._engine.forget()
            self._is_new_game = False

    def _stop(self) -> None:
        if self._search is not None:
            self._search.orders.stop()

    def _ponderhit(self) -> None:
        if self._search is None or not self._search.ponderhit():
            self._say("ponderhit ignored: nothing is pondered on")

    def _is_searching(self) -> bool:
        return self._search is not None and not self._search.answered.is_set()

    def _say(self, text: str) -> None:
        self._output.tell(f"info string {text}")


class _Output:
    """Whole lines, from any thread, until the reader closes."""

    def __init__(self, tell: LogFn) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self.is_cut = False

    def tell(self, text: str) -> None:
        line = " ".join(text.split())
        if line.startswith("info string") and len(line) > _LONGEST_LINE:
            line = line[:_LONGEST_LINE] + " …"
        with self._lock:
            try:
                if not self.is_cut:
                    self._tell(line)
            except OSError:
                self.is_cut = True
