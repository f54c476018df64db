"""Players by name, as settings and the command line write them: ``random``, ``minimax:2~25``.

``~25`` dilutes a player: 25 % of its moves are random. That spans the gap between a random player
and an engine's weakest setting continuously, and does not depend on how an engine weakens itself.

Dimensions: G games.
"""

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from chess_snn.errors import ConfigError
from chess_snn.evaluation.engines.player import (
    EnginePlayer,
    is_engine_name,
    parse_engine,
)
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.players import (
    ExpectimaxPlayer,
    GreedyPlayer,
    MinimaxPlayer,
    Player,
    ProgramFacts,
    RandomPlayer,
    program_of,
)
from chess_snn.games.base import NO_ACTION, Game, GameBatch
from chess_snn.games.starts import random_legal_actions
from chess_snn.jit import kernel
from chess_snn.known import KNOWN_PLAYERS, MAX_DEPTH, MAX_EXPECTIMAX_DEPTH
from chess_snn.rng import random_unit, random_word
from chess_snn.settings import check_range
from chess_snn.types import BoolArray, Int16Array, Int32Array, UInt64Array
from chess_snn.wording import nearest

_DILUTED: Final = re.compile(r"(?P<player>.*)~(?P<percent>[0-9]+(?:\.[0-9]+)?)")

# Counters beyond any ply and any other purpose: the player within draws from the same keys.
_COIN_COUNTER: Final = np.uint64(1) << np.uint64(35)
_MOVE_COUNTER: Final = _COIN_COUNTER + np.uint64(1)
_NAMES: Final = ("random", "greedy", "minimax", "expectimax", "stockfish")
_OURS: Final = re.compile(r"(random|greedy|minimax|expectimax)(?=[:~]|$)")
_HEAD: Final = re.compile(r"[^:@~]*")


def split_dilution(text: str) -> tuple[str, float | None]:
    """(player, percent) of ``PLAYER~PERCENT``; (``text``, None) where nothing is diluted."""
    found = _DILUTED.fullmatch(text)
    return (text, None) if found is None else (found["player"], float(found["percent"]))


def check_dilution(name: str, percent: float) -> None:
    """Refuse to make ``percent`` of the moves of the player called ``name`` random.

    Raises:
        ConfigError: it is not in (0, 100), or the player is diluted already.
    """
    check_range(f"percent of random moves for {name!r}", percent, gt=0.0, lt=100.0)
    if split_dilution(name)[1] is not None:
        raise ConfigError(f"player {name!r} is diluted already; give one percentage")


class DilutedPlayer:
    """Plays a uniformly random legal move with a fixed probability at each ply, else asks another.

    Which plies are random is drawn from each game's own stream: it depends on the game and the
    ply, and neither on the other games nor on the player within.
    """

    def __init__(self, player: Player, percent: float) -> None:
        """``percent`` of the moves are random, in (0, 100).

        Raises:
            ConfigError: as :func:`check_dilution`.
        """
        check_dilution(player.name, percent)
        self.name: str = f"{player.name}~{percent:g}"
        self._player, self._share = player, percent / 100.0

    @property
    def program(self) -> ProgramFacts | None:
        """Return the program of the player within; None where that is one of ours."""
        return program_of(self._player)

    def choose(self, batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
        """See :meth:`chess_snn.evaluation.players.Player.choose`."""
        is_random, move_keys = np.empty(len(batch), np.bool_), np.empty_like(keys)
        _draw(keys, plies, self._share, is_random, move_keys)
        actions = np.full(len(batch), NO_ACTION, dtype=np.int16)
        blind = np.flatnonzero(is_random)
        actions[blind] = random_legal_actions(batch.take(blind), move_keys[blind], plies[blind])
        asked = np.flatnonzero(~is_random & (batch.num_legal > 0))
        if len(asked):
            actions[asked] = self._player.choose(batch.take(asked), keys[asked], plies[asked])
        return actions


@kernel
def _draw(
    keys: UInt64Array, plies: Int32Array, share: float, is_random: BoolArray,
    move_keys: UInt64Array,
) -> None:
    """Toss each game's coin of this ply, and give its random moves a stream of their own."""
    for g in range(len(keys)):
        coins = random_word(keys[g], _COIN_COUNTER)
        is_random[g] = random_unit(coins, np.uint64(plies[g])) < share
        move_keys[g] = random_word(keys[g], _MOVE_COUNTER)


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
    return _parse(game, text)(engines or EngineSettings())


def check_player(game: Game, text: str) -> None:
    """Refuse a ``text`` that names no player on any machine, as :func:`make_player` does.

    An engine need not be installed here: its name can be read where it is not.

    Raises:
        ConfigError: there is no such player, or its argument is missing, superfluous or out of
            range.
    """
    _parse(game, text)


def _parse(game: Game, text: str) -> Callable[[EngineSettings], Player]:
    """Return what makes the player called ``text``."""
    inner, percent = split_dilution(text)
    if percent is not None:
        check_dilution(inner, percent)  # first: it may be diluted a thousand times
        make_inner = _parse(game, inner)
        return lambda engines: DilutedPlayer(make_inner(engines), percent)
    if is_engine_name(text):
        parse_engine(game, text)
        return lambda engines: EnginePlayer(game, text, engines)
    player = _make_ours(game, text)
    return lambda _engines: player


def _make_ours(game: Game, text: str) -> Player:
    match text.partition(":"):
        case "random", "", "":
            return RandomPlayer()
        case "greedy", "", "":
            return GreedyPlayer(game)
        case "minimax", ":", argument if argument:
            return MinimaxPlayer(game, _depth(text, argument, MAX_DEPTH))
        case "expectimax", ":", argument if argument:
            return ExpectimaxPlayer(game, _depth(text, argument, MAX_EXPECTIMAX_DEPTH))
    near = nearest_player(text)
    hint = f"known: {', '.join(KNOWN_PLAYERS)}" if near is None else f"did you mean {near}?"
    raise ConfigError(f"unknown player {text!r}; {hint}")


def nearest_player(text: str) -> str | None:
    """The name that ``text`` was probably meant to be: ``minimax:2`` for ``minmax:2``."""
    head = _HEAD.match(text)
    assert head is not None
    near = nearest(head[0], _NAMES)
    return None if near in (None, head[0]) else f"{near}{text[head.end() :]}"


def is_player_name(text: str) -> bool:
    """Return whether ``text`` is meant for :func:`make_player`, if perhaps wrongly written."""
    return is_engine_name(text) or _OURS.match(text) is not None


def _depth(text: str, argument: str, largest: int) -> int:
    if not (argument.isascii() and argument.isdigit()):
        raise ConfigError(
            f"player {text!r}: the depth must be a whole number from 1 to {largest}"
        )
    return int(argument)
