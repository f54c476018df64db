"""A UCI engine as a player of matches, and how players are written that are engines.

``stockfish@1000`` may look at a thousand nodes a move, ``stockfish:depth=1`` one ply deep, and
``uci:/path/to/engine@nodes=100`` is any other engine. An engine's budget is never time: that would
make it as strong as the machine is idle, while nodes and depth are the same everywhere.
"""

from __future__ import annotations

import re
import shutil
import weakref
from pathlib import Path
from typing import Final

import chess
import numpy as np

from chess_snn.errors import ConfigError, EngineError, IllegalMoveError
from chess_snn.evaluation.engines.pool import EnginePool, EngineSettings
from chess_snn.evaluation.players import FORFEIT, VOID, ProgramFacts
from chess_snn.games.base import NO_ACTION, Game, GameBatch
from chess_snn.known import ENGINE_FORMS
from chess_snn.later import chess_engine
from chess_snn.settings import check_range
from chess_snn.types import Int16Array, Int32Array, UInt64Array

GAMES_FOLDER: Final = "/usr/games"
"""Folder where Debian and its children put engines; often not on PATH."""

_MOST: Final = {"nodes": 1_000_000_000, "depth": 100}
_ENGINE: Final = re.compile(r"(stockfish|uci)(?=[:@]|$)")
_BUDGET: Final = re.compile(
    r"(?P<engine>.+?)(?:[@:](?P<unit>nodes|depth)=|@)(?P<amount>[0-9]{1,12})"
)
_PROTOCOL: Final = "uci:"
_STOCKFISH: Final = "stockfish"


class EnginePlayer:
    """Plays what an engine answers to a position with a fixed budget.

    The engine gets the position (FEN, clocks included) and not the moves that led there, which
    a match does not keep: it does not see that a position occurs again. It forgets each position
    before the next. So its answer is a function of the position, whichever process gives it.

    An illegal answer forfeits its game; where there is no answer the game is void. The processes
    start with the first question and end with the player.
    """

    def __init__(self, game: Game, text: str, settings: EngineSettings) -> None:
        """``text`` names an engine and its budget, such as ``stockfish@1000``; starts nothing.

        The player's name is the shortest way to write it: ``stockfish@nodes=100`` is called
        ``stockfish@100``.

        Raises:
            ConfigError: as :func:`parse_engine`.
            EngineError: the engine is not installed.
        """
        engine, limit = parse_engine(game, text)
        budget = f"@{limit.nodes}" if limit.nodes else f":depth={limit.depth}"
        self.name = f"{engine}{budget}"
        self._game = game
        self._pool = EnginePool(find_engine(engine), limit, settings)
        self._last_illegal: str | None = None
        # The pool does not know the player, so nothing keeps the player alive.
        self._end = weakref.finalize(self, self._pool.close)

    @property
    def program(self) -> ProgramFacts:
        """Name the engine, and its faults; starts it if need be.

        Raises:
            EngineError: the engine does not start.
        """
        return ProgramFacts(
            identity=self._pool.identity,
            failures=self._pool.failures,
            last_failure=self._pool.last_failure,
            last_illegal=self._last_illegal,
        )

    def choose(self, batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
        """See :meth:`chess_snn.evaluation.players.Player.choose`; uses neither keys nor plies.

        Raises:
            EngineError: the engine does not start.
        """
        actions = np.full(len(batch), NO_ACTION, dtype=np.int16)
        live = np.flatnonzero(batch.num_legal)
        answers = self._pool.best_moves([
            chess.Board(self._game.format_state(batch.state[row])) for row in live
        ])
        for row, answer in zip(live, answers, strict=True):
            actions[row] = VOID if answer is None else self._action(batch.state[row], answer)
        return actions

    def close(self) -> None:
        """End the engine's processes; every later game would be void."""
        self._end()

    def _action(self, state: UInt64Array, answer: str) -> int:
        try:
            return self._game.parse_action(state, answer)
        except IllegalMoveError:
            self._last_illegal = f"{answer!r} in {self._game.format_state(state)!r}"
            return FORFEIT


def is_engine_name(text: str) -> bool:
    """Return whether ``text`` is meant to be an engine, if perhaps wrongly written."""
    return _ENGINE.match(text) is not None


def find_engine(program: str) -> Path:
    """The executable file of an engine.

    Args:
        program: a path, if there is a slash in it; else a name that is looked for on PATH, then in
            ``GAMES_FOLDER``; perhaps after ``uci:``.

    Raises:
        EngineError: it is not there; the message says how to install it.
    """
    program = program.removeprefix(_PROTOCOL)
    if "/" in program:
        try:
            return _executable(Path(program).expanduser())
        except (OSError, RuntimeError) as error:  # an impossible path; an unknown user's home
            raise EngineError(
                f"there is no engine at {program!r} ({error}); give another path"
            ) from error
    found = shutil.which(program) or shutil.which(program, path=GAMES_FOLDER)
    if found is None:
        remedy = (
            "`make stockfish` installs it" if program == _STOCKFISH
            else "install it, or give the path of its file: uci:/path/to/engine@1000"
        )
        raise EngineError(
            f"engine {program!r} is not installed: it is neither on PATH nor in {GAMES_FOLDER}; "
            f"{remedy}"
        )
    return Path(found).absolute()


def _executable(path: Path) -> Path:
    if not path.is_file():
        raise EngineError(f"there is no engine at {path}; give the path of its executable file")
    if shutil.which(path) is None:
        raise EngineError(f"engine {path} may not be executed; `chmod +x` it, if it is a program")
    return path.absolute()


def parse_engine(game: Game, text: str) -> tuple[str, chess_engine.Limit]:
    """The engine that ``text`` names, installed or not, and how far it looks for one move.

    Returns:
        ``stockfish`` or ``uci:PROGRAM``, and fixed nodes or a fixed depth.

    Raises:
        ConfigError: no engine or no budget is named, or one out of range, or engines do not play
            ``game``.
    """
    found = _BUDGET.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"player {text!r} does not say how far the engine may look; write it as in "
            "stockfish@1000 (nodes) or stockfish:depth=8"
        )
    unit, amount = found["unit"] or "nodes", int(found["amount"])
    check_range(f"an engine's {unit}", amount, ge=1, le=_MOST[unit])
    engine = found["engine"]
    is_known = engine == _STOCKFISH or engine.startswith(_PROTOCOL)
    if not (is_known and engine.removeprefix(_PROTOCOL)):
        raise ConfigError(f"player {text!r} names no engine; known: {', '.join(ENGINE_FORMS)}")
    if game.spec.name != "chess":
        raise ConfigError(f"player {text!r} plays chess, not {game.spec.name}; use 'random'")
    return engine, chess_engine.Limit(**{unit: amount})
