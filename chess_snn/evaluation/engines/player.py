"""A UCI engine as a player of matches."""

import weakref
from pathlib import Path

import numpy as np

from chess_snn.errors import ConfigError, IllegalMoveError
from chess_snn.evaluation.engines.budget import EngineBudget
from chess_snn.evaluation.engines.pool import EnginePool
from chess_snn.evaluation.engines.settings import EngineSettings
from chess_snn.evaluation.players import FORFEIT, VOID, ProgramFacts
from chess_snn.games.base import NO_ACTION, Game, GameBatch
from chess_snn.types import Int16Array, Int32Array, UInt64Array


def check_plays(game: Game, name: str) -> None:
    """Refuse a game that engines do not play; ``name`` is the player's.

    Raises:
        ConfigError: the game is not chess.
    """
    if game.spec.name != "chess":
        raise ConfigError(f"player {name!r} plays chess, not {game.spec.name}; use 'random'")


class EnginePlayer:
    """Plays what an engine answers to a position with a fixed budget.

    The engine is told the position (FEN, clocks included) and not the moves that led there, which
    a match does not keep: it does not see that a position occurs again. It forgets each position
    before the next. So its answer is a function of the position, whichever process gives it.

    An illegal answer forfeits its game; where there is no answer the game is void. The processes
    start with the first question and end with the player.
    """

    def __init__(
        self, game: Game, program: Path, budget: EngineBudget, *, name: str,
        settings: EngineSettings | None = None,
    ) -> None:
        """Nothing is started yet.

        Raises:
            ConfigError: the game is not chess.
        """
        check_plays(game, name)
        self.name = name
        self._game = game
        self._pool = EnginePool(program, budget.command, settings or EngineSettings())
        self._last_illegal: str | None = None
        # The pool does not know the player, so nothing keeps the player alive.
        self._end = weakref.finalize(self, self._pool.close)

    @property
    def program(self) -> ProgramFacts:
        """What the engine calls itself, and what it did wrong; starts it if need be.

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
            self._game.format_state(batch.state[row]) for row in live
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
