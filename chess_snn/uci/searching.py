"""One ``go``: a search from the command to ``bestmove``.

Every search ends with exactly one ``bestmove``, whatever happens in it. After ``go infinite`` or
``go ponder`` it waits for ``stop`` or ``ponderhit`` before it answers. It
works in a thread of its own, while the session goes on reading commands.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import chess
import numpy as np

from chess_snn.errors import ChessSnnError, IllegalMoveError
from chess_snn.games.chess import action_of_move
from chess_snn.games.chess.notation import parse_uci
from chess_snn.search import Line
from chess_snn.types import Int16Array, LogFn
from chess_snn.uci.engine import Engine
from chess_snn.uci.limits import UNLIMITED, Limits, budget_of
from chess_snn.uci.options import Options
from chess_snn.uci.position import Position
from chess_snn.uci.report import NO_MOVE, best_move, info_lines


class Orders:
    """Orders of the GUI to the work: whether it may answer yet, and whether it must now."""

    def __init__(self, *, is_held: bool = False, can_be_hit: bool = False) -> None:
        self.is_held = is_held
        """True if it must not answer yet."""
        self.is_stopped = False
        """True if it must answer now."""
        self.released_s: float | None = None
        """``time.monotonic()`` of ``ponderhit``."""
        self._can_be_hit = can_be_hit
        self._changed = threading.Event()

    def stop(self) -> None:
        """Answer now."""
        self.is_stopped = True
        self._changed.set()

    def ponderhit(self) -> bool:
        """Answer when the work is done; its time begins now. False if nothing is pondered on."""
        is_hit, self._can_be_hit = self._can_be_hit, False
        if is_hit:
            self.released_s = time.monotonic()
            self.is_held = False
            self._changed.set()
        return is_hit

    def wait(self) -> None:
        """Wait while the answer is held."""
        while self.is_held and not self.is_stopped:
            self._changed.wait()


Work = Callable[[Orders], Sequence[str]]
"""Returns the lines that end it."""


class Running:
    """Work on its way. Its methods are for the thread that reads commands."""

    def __init__(self, work: Work, orders: Orders | None, tell: LogFn) -> None:
        """Begin at once; ``tell`` must not raise.

        Without ``orders`` only the GUI's ``stop`` ends the work early.
        """
        self._is_search = orders is not None
        self.orders = orders or Orders()
        self.answered = threading.Event()
        """Set when the last lines were sent, or are being sent now."""
        self._work, self._tell = work, tell
        self._thread = threading.Thread(target=self._run, name="search")
        self._thread.start()

    def end(self) -> None:
        """Stop a search, and wait for the last lines."""
        if self._is_search:
            self.orders.stop()
        self._thread.join()

    def _run(self) -> None:
        try:
            answer = self._work(self.orders)
        except ChessSnnError as error:
            answer = [f"info string {error}"]
        except Exception as error:  # noqa: BLE001 -- no command may end the session
            answer = [f"info string {type(error).__name__}: {error}"]
        self.orders.wait()
        self.answered.set()
        for line in answer:
            self._tell(line)


_READ_PERIOD_S: Final = 0.25
"""Between two looks at the tree for mates and depth."""
_READ_GROWTH: Final = 1.5
"""A small tree is read earlier: when it has grown by this factor."""
_INFO_PERIOD_S: Final = 1.0


class Search:
    """The search of one ``go``."""

    def __init__(
        self, engine: Engine, position: Position, limits: Limits, options: Options, start_s: float,
        tell: LogFn,
    ) -> None:
        """``go`` was read at ``start_s``, and ``tell`` must not raise."""
        self._engine, self._position, self._limits = engine, position, limits
        self._options, self._start_s, self._tell = options, start_s, tell
        self._board = position.board.copy(stack=False)
        self.simulations = 0
        """Made so far."""
        self._lines: list[Line] = []
        self._next_read, self._next_read_s, self._next_info_s = 0.0, 0.0, _INFO_PERIOD_S

    def run(self, orders: Orders) -> list[str]:
        """Search for as long as ``orders`` allow, and return the ``bestmove``."""
        try:
            return [self._answer(orders)]
        except Exception as error:  # noqa: BLE001 -- who waits for a bestmove must get one
            self._tell(f"info string the search failed: {type(error).__name__}: {error}")
            return [self._first_legal_move()]

    def _first_legal_move(self) -> str:
        move = self._position.any_move()
        return NO_MOVE if move is None else f"bestmove {move.uci()}"

    def _answer(self, orders: Orders) -> str:
        position = self._position
        if position.any_move() is None:
            self._tell(f"info depth 0 score {'mate 0' if self._board.is_check() else 'cp 0'}")
            return NO_MOVE
        self._engine.prepare(self._options)
        if not self._engine.has_network:
            hint = self._engine.refusal or (
                "give a network with setoption name Model value PATH, or start with --model PATH"
            )
            self._tell(
                f"info string NO NETWORK: this is the first legal move, not a choice; {hint}"
            )
            return self._first_legal_move()
        if not position.is_searchable:
            self._tell("info string neither side can mate: any move will do")
            self._tell("info depth 0 score cp 0")
            return self._first_legal_move()
        if kept := self._engine.stand_at(position, self._searchmoves()):
            self._tell(f"info string {kept} visits kept from earlier searches")
        self._grow(orders)
        self._read()
        self._report()
        return best_move(self._board, self._choose())

    def _grow(self, orders: Orders) -> None:
        tree, pace = self._engine.tree, self._engine.pace
        limited = budget_of(
            self._limits, self._options, white_to_move=self._board.turn == chess.WHITE,
            num_moves=self._board.legal_moves.count(),
        )
        pace.begin_search()
        self._look()
        while not orders.is_stopped:
            budget = UNLIMITED if orders.is_held else limited
            clock_s = self._seconds() if orders.released_s is None else _since(orders.released_s)
            if budget.is_spent(self.simulations, clock_s, pace.reserve_s, self._lines):
                return
            if tree.is_settled(budget.most_to_come(self.simulations, clock_s)):
                return
            if tree.is_full or budget.is_decided(self._lines):
                if not orders.is_held:
                    return
                self._report()
                orders.wait()
                continue
            leaves = pace.leaves(tree.visits, budget.simulations_left(self.simulations))
            start_s = time.monotonic()
            self.simulations += tree.grow(leaves)
            wave_s = _since(start_s)
            self._look()
            pace.record(leaves, wave_s, _since(start_s) - wave_s)

    def _look(self) -> None:
        """Read the tree and report, where it is time."""
        if self.simulations >= self._next_read or self._seconds() >= self._next_read_s:
            self._read()
            self._next_read = 1 + _READ_GROWTH * self.simulations
            self._next_read_s = self._seconds() + _READ_PERIOD_S
        if self._seconds() >= self._next_info_s:
            self._report()
            self._next_info_s = self._seconds() + _INFO_PERIOD_S

    def _read(self) -> None:
        """Only what is reported: every line is a walk down the tree."""
        self._lines = self._engine.tree.lines(self._options.multipv)

    def _report(self) -> None:
        for line in info_lines(
            self._board, self._engine.tree, self._lines, simulations=self.simulations,
            seconds=self._seconds(), show_wdl=self._options.show_wdl,
        ):
            self._tell(line)

    def _choose(self) -> Line:
        """The best line, or with a temperature one drawn from the visits.

        A proved win is always played and a proved loss never drawn.
        """
        temperature = self._options.temperature
        best = self._lines[0]
        if temperature == 0 or best.win_plies != 0:
            return best
        lines = self._engine.tree.lines()
        undecided = [line for line in lines if line.win_plies == 0 and line.visits > 0]
        if not undecided:
            return best
        visits = np.array([line.visits for line in undecided], np.float64)
        with np.errstate(over="ignore"):
            weights = np.exp(np.log(visits / visits.max()) / temperature)
        return undecided[np.random.default_rng().choice(len(visits), p=weights / weights.sum())]

    def _searchmoves(self) -> Int16Array | None:
        actions = set()
        for text in self._limits.searchmoves:
            try:
                move = parse_uci(self._board, text)
            except IllegalMoveError as error:
                self._tell(f"info string searchmoves: {error}")
            else:
                actions.add(action_of_move(move, self._board.turn))
        return np.array(sorted(actions), np.int16) if actions else None

    def _seconds(self) -> float:
        """Since ``go``."""
        return _since(self._start_s)


def _since(start_s: float) -> float:
    return time.monotonic() - start_s
