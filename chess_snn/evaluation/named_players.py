"""Players by name, as settings and the command line write them: ``random``, ``minimax:2``."""

import re
from collections.abc import Callable
from typing import Final

from chess_snn.errors import ConfigError
from chess_snn.evaluation.dilution import DilutedPlayer, check_dilution, split_dilution
from chess_snn.evaluation.engines import (
    ENGINE_FORMS,
    EngineSettings,
    check_engine,
    is_engine_name,
    make_engine_player,
)
from chess_snn.evaluation.expectimax import MAX_EXPECTIMAX_DEPTH, ExpectimaxPlayer
from chess_snn.evaluation.minimax import MAX_DEPTH, GreedyPlayer, MinimaxPlayer
from chess_snn.evaluation.players import Player, RandomPlayer
from chess_snn.games.base import Game


def make_player(game: Game, text: str, engines: EngineSettings | None = None) -> Player:
    """The player called ``text``.

    Known are ``random``, ``greedy`` (the best heuristic after one ply), ``minimax:N`` (N plies),
    ``expectimax:N`` (N own moves, in a game of one player),
    engines (``stockfish@1000`` for a thousand nodes a move, ``stockfish:depth=1``,
    ``uci:/path/to/engine@100``), and each of them diluted: ``greedy~25`` makes 25 % of its moves
    at random. An engine's processes start with its first move.

    Args:
        game: that is played.
        text: who plays; also the player's name, in its shortest form.
        engines: how engines are run.

    Raises:
        ConfigError: there is no such player, or its argument is missing, superfluous or out of
            range.
        EngineError: the engine is not installed.
    """
    inner, percent = split_dilution(text)
    if percent is not None:
        check_dilution(inner, percent)  # first: it may be diluted a thousand times
        return DilutedPlayer(make_player(game, inner, engines), percent)
    if is_engine_name(text):
        return make_engine_player(game, text, engines or EngineSettings())
    return _make_ours(game, text)


def check_player(game: Game, text: str) -> None:
    """Refuse a ``text`` that names no player on any machine, as :func:`make_player` does.

    Nobody looks whether an engine is installed here: what names one can be read where it is not.

    Raises:
        ConfigError: there is no such player, or its argument is missing, superfluous or out of
            range.
    """
    inner, percent = split_dilution(text)
    if percent is not None:
        check_dilution(inner, percent)
        check_player(game, inner)
    elif is_engine_name(text):
        check_engine(game, text)
    else:
        _make_ours(game, text)


def _make_ours(game: Game, text: str) -> Player:
    kind, separator, argument = text.partition(":")
    builder = _BUILDERS.get(kind + separator)
    if builder is None or bool(separator) != bool(argument):
        raise ConfigError(f"unknown player {text!r}; known: {', '.join(KNOWN_PLAYERS)}")
    return builder(game, argument)


def is_player_name(text: str) -> bool:
    """Whether ``text`` is meant for :func:`make_player`, if perhaps wrongly written."""
    return is_engine_name(text) or _OURS.match(text) is not None


def _minimax(game: Game, argument: str) -> Player:
    return MinimaxPlayer(game, _depth("minimax", argument, MAX_DEPTH))


def _expectimax(game: Game, argument: str) -> Player:
    return ExpectimaxPlayer(game, _depth("expectimax", argument, MAX_EXPECTIMAX_DEPTH))


def _depth(kind: str, argument: str, largest: int) -> int:
    if not (argument.isascii() and argument.isdigit()):
        raise ConfigError(
            f"player '{kind}:{argument}': the depth must be a whole number from 1 to {largest}"
        )
    return int(argument)


KNOWN_PLAYERS = (
    "random", "greedy", f"minimax:N (N from 1 to {MAX_DEPTH})",
    f"expectimax:N (N from 1 to {MAX_EXPECTIMAX_DEPTH})", *ENGINE_FORMS,
    "PLAYER~P (P % of its moves are random)",
)
"""How each player is written."""

_OURS: Final = re.compile(r"(random|greedy|minimax|expectimax)(?=[:~]|$)")

_BUILDERS: dict[str, Callable[[Game, str], Player]] = {
    "random": lambda _game, _argument: RandomPlayer(),
    "greedy": lambda game, _argument: GreedyPlayer(game),
    "minimax:": _minimax,
    "expectimax:": _expectimax,
}
"""A kind that takes an argument is listed with its colon."""
