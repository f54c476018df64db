"""Players of a match: the interface, a random mover, any search, and players that look ahead.

Dimensions: G games, M columns for legal actions.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from chess_snn.errors import ConfigError, IllegalMoveError
from chess_snn.games.base import NO_ACTION, Game, GameBatch
from chess_snn.games.minimax import best_actions, best_rewarded_actions
from chess_snn.games.starts import random_legal_actions
from chess_snn.known import MAX_DEPTH, MAX_EXPECTIMAX_DEPTH
from chess_snn.search.base import Search
from chess_snn.settings import check_range
from chess_snn.types import Int16Array, Int32Array, UInt64Array

FORFEIT: Final = -2
"""Stand-in for an action: the player broke the rules, and loses the game."""
VOID: Final = -3
"""Stand-in for an action: the player could not answer, and the game does not count."""


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """Facts about the program behind a player."""

    identity: str
    """Its name and version, in its own words."""
    failures: int
    """Number of times that it died, hung or did not answer, and was restarted."""
    last_failure: str | None
    """Last failure, and its position."""
    last_illegal: str | None
    """The last answer that was no legal move, and its position."""

    def followed_by(self, later: "ProgramFacts") -> "ProgramFacts":
        """Return the facts after more games of the same program."""
        return ProgramFacts(
            later.identity,
            self.failures + later.failures,
            later.last_failure or self.last_failure,
            later.last_illegal or self.last_illegal,
        )


class Player(Protocol):
    """Chooses actions for many games at once.

    A player that is another program also has a property ``program``, see :func:`program_of`.
    """

    @property
    def name(self) -> str:
        """Identifies the player in results; two players of one match differ in it."""
        ...

    def choose(self, batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
        """A legal action for every row of ``batch``, which is not changed.

        Games do not influence each other: one gets the same answers alone as among others. A
        player may remember what it thought two plies ago.

        Args:
            batch: G positions, some of which may have ended.
            keys: uint64[G], one random stream a game; ``plies`` is the place in it.
            plies: int32[G], half-moves since each game's start.

        Returns:
            int16[G]: the action to play, ``NO_ACTION`` where the game has ended; ``FORFEIT`` or
            ``VOID`` from a player that is another program, and did not give a legal one.
        """
        ...


def program_of(player: Player) -> ProgramFacts | None:
    """The program behind ``player``; None where it is one of ours."""
    facts: ProgramFacts | None = getattr(player, "program", None)
    return facts


def choose_legal(
    game: Game, player: Player, batch: GameBatch, keys: UInt64Array, plies: Int32Array
) -> Int16Array:
    """The player's actions for ``batch``, none of whose games has ended.

    ``FORFEIT`` and ``VOID`` are among them in games of two players alone.

    Raises:
        IllegalMoveError: one of them is not legal.
    """
    actions = player.choose(batch, keys, plies)
    is_legal = batch.lists(actions)
    if game.spec.num_players > 1:
        is_legal |= (actions == FORFEIT) | (actions == VOID)
    if not is_legal.all():
        row = int(np.argmin(is_legal))
        raise IllegalMoveError(
            f"player {player.name!r} chose action {actions[row]}, which is illegal in "
            f"{game.format_state(batch.state[row])!r}"
        )
    return actions


class RandomPlayer:
    """Plays every legal action with the same probability."""

    def __init__(self, name: str = "random") -> None:
        self.name = name

    def choose(self, batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
        """See :meth:`Player.choose`."""
        return random_legal_actions(batch, keys, plies)


class SearchPlayer:
    """Plays what a search says, at one temperature throughout the game."""

    def __init__(self, search: Search, name: str, temperature: float = 0.0) -> None:
        """``temperature`` >= 0; 0 plays the best action."""
        check_range("temperature", temperature, ge=0.0, lt=np.inf)
        self.name = name
        self._search = search
        self._temperature = temperature

    def choose(self, batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
        """See :meth:`Player.choose`."""
        actions = np.full(len(batch), NO_ACTION, dtype=np.int16)
        live = np.flatnonzero(batch.num_legal)
        if len(live):
            temperatures = np.full(len(live), self._temperature, dtype=np.float32)
            result = self._search.run(batch.take(live), keys[live], plies[live], temperatures)
            actions[live] = result.actions
        return actions


class MinimaxPlayer:
    """Plays the action with the best minimax value, ties broken uniformly by the game's stream.

    What an action is worth: :func:`chess_snn.games.minimax.best_actions`.
    """

    def __init__(self, game: Game, depth: int, name: str | None = None) -> None:
        """Look ``depth`` plies ahead: 1 is the player's own move, 2 also the reply.

        Raises:
            ConfigError: ``depth`` is not in [1, MAX_DEPTH], or the game is not one of two players
                without chance.
        """
        check_range("minimax depth", depth, ge=1, le=MAX_DEPTH)
        if game.spec.num_players != 2 or game.spec.is_stochastic:
            raise ConfigError(
                f"minimax plays games of two players without chance, {game.spec.name!r} is none; "
                "use the player 'random'"
            )
        self.name = f"minimax:{depth}" if name is None else name
        self._game = game
        self._depth = depth

    def choose(self, batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
        """See :meth:`chess_snn.evaluation.players.Player.choose`."""
        return random_legal_actions(best_actions(self._game, batch, self._depth), keys, plies)


class GreedyPlayer:
    """Looks one action ahead: wins at once if it can, else leads to the best heuristic.

    In a game of one player it takes what is rewarded most at once. Ties are broken uniformly by the
    game's stream.
    """

    name = "greedy"

    def __init__(self, game: Game) -> None:
        self._game = game

    def choose(self, batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
        """See :meth:`chess_snn.evaluation.players.Player.choose`."""
        if self._game.spec.num_players == 1:
            best = best_rewarded_actions(self._game, batch)
        else:
            best = best_actions(self._game, batch, depth=1)
        return random_legal_actions(best, keys, plies)


class ExpectimaxPlayer:
    """Plays what :meth:`chess_snn.games.base.Game.planned_actions` says."""

    def __init__(self, game: Game, depth: int) -> None:
        """Look ``depth`` of the player's own moves ahead, and at the events between them.

        Raises:
            ConfigError: ``depth`` is not in [1, MAX_EXPECTIMAX_DEPTH], or the game has more than
                one player.
        """
        check_range("expectimax depth", depth, ge=1, le=MAX_EXPECTIMAX_DEPTH)
        if game.spec.num_players != 1:
            raise ConfigError(
                f"expectimax plays games of one player, {game.spec.name!r} has "
                f"{game.spec.num_players}; use the player 'minimax:{depth}'"
            )
        self.name = f"expectimax:{depth}"
        self._game = game
        self._depth = depth

    def choose(self, batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
        """See :meth:`chess_snn.evaluation.players.Player.choose`."""
        return self._game.planned_actions(batch.state, self._depth)
