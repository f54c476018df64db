"""What commands take as text: players, networks, positions, and the game that they are of."""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer

from chess_snn.campaign.models import references
from chess_snn.campaign.models.in_play import split_play
from chess_snn.campaign.models.references import (
    KNOWN_MODELS,
    SHIPPED,
    Model,
    is_registered,
    looking_for,
    nearest_model,
    split_generation,
)
from chess_snn.campaign.models.seats import seat_network
from chess_snn.cli.orchestration import fetch_model
from chess_snn.config import check_range
from chess_snn.errors import PositionError, UsageError
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.named_players import (
    KNOWN_PLAYERS,
    is_player_name,
    make_player,
    nearest_player,
    split_dilution,
)
from chess_snn.evaluation.players import Player
from chess_snn.games import GAME_NAMES, get_game
from chess_snn.games.base import Game
from chess_snn.search import MAX_SIMULATIONS
from chess_snn.types import UInt64Array

DEFAULT_ENGINE_S: Final = EngineSettings().answer_s
"""Seconds that an engine may take for a move."""

GameOption = Annotated[
    str, typer.Option("--game", help=f"{' or '.join(GAME_NAMES)}; by default the networks' game.")
]
_BUDGET = re.compile(r"(?P<model>.+):(?P<simulations>[0-9]{1,12})")

DEFAULT_GAME: Final = "chess"
"""Of commands that neither a network nor an option tells which one."""
SHIPPED_CHESS: Final = f"{SHIPPED}chess"
"""The network of chess that comes with this program."""
ADVISER: Final = "expectimax:2"
"""Says what it would play in a game of one player, beside a network or without one."""
START: Final = "startpos"
"""Stands for the position in which a game begins."""


def find_player(game: Game, text: str, simulations: int) -> Model | str:
    """The player of ``game`` that ``text`` names: a network, or the name of a fixed player.

    ``text`` is one of ``KNOWN_PLAYERS``, or a network (``KNOWN_MODELS``), which may be followed by
    ``#`` and how it is played (:mod:`chess_snn.campaign.models.in_play`), and then by ``:N`` for
    its own number of simulations; ``~P`` makes P % of its moves random.

    Raises:
        UsageError: there is no such player, or it plays another game.
    """
    if is_player_name(text):
        return make_player(game, text).name
    return find_network(game, text, simulations)


def find_network(game: Game | None, text: str, simulations: int) -> Model:
    """As :func:`find_player`, for networks alone; of any game if that is None.

    Raises:
        UsageError: as there; or the player is not a network.
    """
    if is_player_name(text):
        raise UsageError(f"{text!r} is a player and not a network; give a network: {KNOWN_MODELS}")
    with looking_for(text):
        name, percent = (text, None) if Path(text).exists() else split_dilution(text)
        if percent is not None:
            check_range(f"percent of random moves in {text!r}", percent, gt=0.0, lt=100.0)
        budget = _BUDGET.fullmatch(name)
        if budget is not None and not Path(name).exists():
            name, simulations = budget["model"], int(budget["simulations"])
        check_range(f"simulations of {name}", simulations, ge=0, le=MAX_SIMULATIONS)
        model, _ = split_play(name)
        path, _ = split_generation(model)
        if not path.exists() and not is_registered(name):
            near = nearest_model(model) or nearest_player(text)
            hint = f"did you mean {near}?" if near else (
                f"known: {', '.join(KNOWN_PLAYERS)}, or a network: {KNOWN_MODELS}; behind a "
                "network :N is its number of simulations"
            )
            raise UsageError(f"unknown player {text!r}; {hint}")
        found = find_model(name, None if game is None else game.spec.name)
    return replace(found, simulations=simulations, random_percent=percent)


def take_seat(
    game: Game, player: Model | str, num_games: int, num_threads: int | None, device: str,
    threads: ExitStack, engine_s: float = DEFAULT_ENGINE_S,
) -> Player:
    """The player itself, for ``num_games`` at once; ``threads`` ends the threads it needs.

    ``num_threads`` of the network, or processes of the engine; None takes what is of use.
    """
    if isinstance(player, str):
        return make_player(game, player, EngineSettings(num_threads or 0, answer_s=engine_s))
    return seat_network(game, player, num_games, num_threads, device, threads)


def game_of_players(texts: Sequence[str], wanted: str) -> Game:
    """The game called ``wanted``; if that is empty, the one that a network among them plays.

    Chess, if there is no network.

    Raises:
        UsageError: there is no such player, or no such game.
    """
    networks = [text for text in texts if not is_player_name(text)]
    if not wanted and networks:
        wanted = find_network(None, networks[0], 0).game
    return get_game(wanted or DEFAULT_GAME)


def find_model(text: str, game: str | None = None) -> Model:
    """The model that ``text`` names, see ``KNOWN_MODELS``; a registered one is fetched.

    Raises:
        ChessSnnError: as :func:`chess_snn.campaign.models.references.find_model`; or it does not
            play ``game``.
    """
    model = references.find_model(text, fetch_model)
    if game is not None:
        check_game(model.label, model.game, game)
    return model


def check_game(what: str, found: str, wanted: str) -> None:
    """Raise UsageError unless ``what`` is of the game ``wanted`` and not another, ``found``."""
    if found != wanted:
        raise UsageError(f"{what} is of the game {found}, and this command needs {wanted} here")


def read_position(game: Game, text: str) -> UInt64Array:
    """State row uint64[W] of ``text``: ``START`` (of seed 0), or the game's notation.

    Raises:
        PositionError: it is malformed, cannot occur, or nature is to move there.
    """
    if text == START:
        start: UInt64Array = game.initial_states(np.zeros(1, np.uint64))[0]
        return start
    state = game.parse_state(text)
    if game.event_probabilities(state[None]).any():
        raise PositionError(
            f"a chance event is still to come in {text!r}; give a position in which a player is to "
            "move"
        )
    return state
