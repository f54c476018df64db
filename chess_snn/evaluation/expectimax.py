"""A player without a network for games of one player: the game's own planning."""

from chess_snn.config import check_range
from chess_snn.errors import ConfigError
from chess_snn.games.base import Game, GameBatch
from chess_snn.types import Int16Array, Int32Array, UInt64Array

MAX_EXPECTIMAX_DEPTH = 4
"""Deepest tree offered; each level multiplies the work by some fifty."""


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
