"""Players by name, as settings and the command line write them: ``random``, ``minimax:2``."""

from collections.abc import Callable

from chess_snn.errors import ConfigError
from chess_snn.evaluation.minimax import MAX_DEPTH, GreedyPlayer, MinimaxPlayer
from chess_snn.evaluation.players import Player, RandomPlayer
from chess_snn.games.base import Game


def make_player(game: Game, text: str) -> Player:
    """The player called ``text``, whose name is ``text``.

    Known are ``random``, ``greedy`` (the best heuristic after one ply) and ``minimax:N`` (N plies).

    Raises:
        ConfigError: there is no such player, or its argument is missing, superfluous or out of
            range.
    """
    kind, separator, argument = text.partition(":")
    builder = _BUILDERS.get(kind + separator)
    if builder is None or bool(separator) != bool(argument):
        raise ConfigError(f"unknown player {text!r}; known: {', '.join(KNOWN_PLAYERS)}")
    return builder(game, argument)


def _minimax(game: Game, argument: str) -> Player:
    if not (argument.isascii() and argument.isdigit()):
        raise ConfigError(
            f"player 'minimax:{argument}': the depth must be a whole number from 1 to {MAX_DEPTH}"
        )
    return MinimaxPlayer(game, int(argument))


KNOWN_PLAYERS = ("random", "greedy", f"minimax:N (N from 1 to {MAX_DEPTH})")
"""How each player is written."""

_BUILDERS: dict[str, Callable[[Game, str], Player]] = {
    "random": lambda _game, _argument: RandomPlayer(),
    "greedy": lambda game, _argument: GreedyPlayer(game),
    "minimax:": _minimax,
}
"""A kind that takes an argument is listed with its colon."""
