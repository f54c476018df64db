"""Players that look a few plies ahead for material, in full width."""

from chess_snn.config import check_range
from chess_snn.errors import ConfigError
from chess_snn.games.base import Game, GameBatch
from chess_snn.games.minimax import best_actions, best_rewarded_actions
from chess_snn.games.sampling import random_legal_actions
from chess_snn.types import Int16Array, Int32Array, UInt64Array

MAX_DEPTH = 6
"""Deepest tree offered; each level multiplies the work by the number of legal actions."""


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

    def __init__(self, game: Game, name: str = "greedy") -> None:
        self.name = name
        self._game = game

    def choose(self, batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
        """See :meth:`chess_snn.evaluation.players.Player.choose`."""
        if self._game.spec.num_players == 1:
            best = best_rewarded_actions(self._game, batch)
        else:
            best = best_actions(self._game, batch, depth=1)
        return random_legal_actions(best, keys, plies)
