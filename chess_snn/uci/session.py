"""The conversation with a GUI: a line in, the lines it asks for out.

No line raises an exception. A malformed line gets an ``info string`` as its answer and changes
nothing. Between ``isready`` and ``readyok`` the network loads, in a thread. A command that cannot
be obeyed during a search ends it first, with its ``bestmove``; as in other engines it waits for a
``bench`` or a ``go perft``, which ``stop`` ends.
"""

import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from chess_snn import __version__
from chess_snn.errors import ChessSnnError
from chess_snn.games.base import Game
from chess_snn.types import LogFn
from chess_snn.uci.commands import parse_go, parse_option, parse_position, split_line
from chess_snn.uci.console import bench, board_lines, count_moves, evaluate
from chess_snn.uci.engine import Engine, OpenNet
from chess_snn.uci.options import Options, declare, set_option
from chess_snn.uci.position import Position
from chess_snn.uci.searching import Orders, Running, Search, Work

_LONGEST_LINE: Final = 500


class Session:
    """One engine and its GUI. Call :meth:`run`, or :meth:`close` at the end."""

    def __init__(
        self, game: Game, open_net: OpenNet, tell: LogFn, options: Options
    ) -> None:
        """``tell`` takes one line to the GUI; an OSError it raises means that the GUI has gone."""
        self._game = game
        self._output = _Output(tell)
        self._engine = Engine(game, open_net, self._output.tell)
        self._defaults = self._options = options
        self._position = Position(game)
        self._refused = ""
        self._is_new_game = self._is_preparing = False
        self._running: Running | None = None

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
            name, arguments = split_line(line, COMMANDS)
            if name:
                COMMANDS[name](self, arguments)
        except ChessSnnError as error:
            self._say(str(error))
            return True
        return name != "quit"

    def close(self) -> None:
        """End a running search with its ``bestmove``, and the engine's threads."""
        self._end_search()
        self._engine.close()

    def _introduce(self, _arguments: str) -> None:
        self._output.tell(f"id name chess-snn {__version__}")
        self._output.tell("id author the chess-snn developers")
        for declaration in declare(self._defaults):
            self._output.tell(declaration)
        self._output.tell("uciok")

    def _answer_ready(self, _arguments: str) -> None:
        if self._is_searching() and not self._is_preparing:
            self._output.tell("readyok")
            return
        self._begin(partial(self._prepare, self._options))
        self._is_preparing = True

    def _prepare(self, options: Options, _orders: Orders) -> list[str]:
        try:
            self._engine.prepare(options)
        except Exception as error:  # noqa: BLE001 -- who asked waits for readyok, come what may
            self._say(f"the network could not be prepared: {type(error).__name__}: {error}")
        if not options.model:
            self._say("no network yet: setoption name Model value PATH, or start with --model")
        return ["readyok"]

    def _begin_game(self, _arguments: str) -> None:
        self._end_search()
        self._is_new_game = True
        self._position, self._refused = Position(self._game), ""

    def _set_option(self, arguments: str) -> None:
        self._options = set_option(self._options, *parse_option(arguments))

    def _set_position(self, arguments: str) -> None:
        fen, moves = parse_position(arguments)
        self._end_search()
        try:
            self._position = Position.after(self._game, fen, moves)
        except ChessSnnError as error:
            self._refused = str(error)
            self._say(f"position refused, the one before stays: {error}")
        else:
            self._refused = ""

    def _go(self, arguments: str) -> None:
        start_s = time.monotonic()
        limits, faults = parse_go(arguments)
        self._end_search()
        for fault in faults:
            self._say(fault)
        if self._refused:
            self._say(
                "searching the last valid position, "
                f"{self._position.board.fen()}; refused was: {self._refused}"
            )
        tell, position = self._output.tell, self._position
        if limits.perft is not None:
            self._begin(partial(count_moves, position.board.copy(), limits.perft, tell))
            return
        search = Search(self._engine, position, limits, self._options, start_s, tell)
        is_held = limits.infinite or limits.ponder
        can_be_hit = limits.ponder and not limits.infinite
        self._begin(search.run, Orders(is_held=is_held, can_be_hit=can_be_hit))

    def _evaluate(self, _arguments: str) -> None:
        self._begin(partial(evaluate, self._engine, self._position, self._options))

    def _bench(self, _arguments: str) -> None:
        tell = self._output.tell
        self._begin(partial(bench, self._engine, self._game, self._options, tell))

    def _begin(self, work: Work, orders: Orders | None = None) -> None:
        """Let ``work`` take the place of what runs; ``orders`` are those of a search."""
        self._end_search()
        self._forget_the_last_game()
        self._is_preparing = False
        self._running = Running(work, orders, self._output.tell)

    def _end_search(self) -> None:
        """Have the answer of a running search, which a GUI need not stop before it goes on."""
        if self._running is not None:
            self._running.end()

    def _forget_the_last_game(self) -> None:
        if self._is_new_game:
            self._engine.forget()
            self._is_new_game = False

    def _show_board(self, _arguments: str) -> None:
        for line in board_lines(self._position.board):
            self._output.tell(line)

    def _stop(self, _arguments: str) -> None:
        if self._running is not None:
            self._running.orders.stop()

    def _ponderhit(self, _arguments: str) -> None:
        if self._running is None or not self._running.orders.ponderhit():
            self._say("ponderhit ignored: nothing is pondered on")

    def _ignore(self, _arguments: str) -> None:
        pass

    def _is_searching(self) -> bool:
        return self._running is not None and not self._running.answered.is_set()

    def _say(self, text: str) -> None:
        self._output.tell(f"info string {text}")


COMMANDS: Final[dict[str, Callable[[Session, str], None]]] = {
    "uci": Session._introduce,
    "isready": Session._answer_ready,
    "ucinewgame": Session._begin_game,
    "setoption": Session._set_option,
    "position": Session._set_position,
    "go": Session._go,
    "stop": Session._stop,
    "ponderhit": Session._ponderhit,
    "quit": Session._ignore,
    "debug": Session._ignore,
    "register": Session._ignore,
    "d": Session._show_board,
    "eval": Session._evaluate,
    "bench": Session._bench,
}
"""The method that each command calls with its arguments."""


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
