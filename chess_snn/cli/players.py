"""Arguments of commands: players, networks, positions, and the game that they are of."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import numpy as np

from chess_snn.campaign.models import references
from chess_snn.campaign.models.model import Model, seat_network
from chess_snn.cli.options import START
from chess_snn.cli.orchestration import fetch_model
from chess_snn.errors import PositionError
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.named_players import is_player_name, make_player
from chess_snn.evaluation.players import Player
from chess_snn.games import get_game
from chess_snn.games.base import Game
from chess_snn.known import ANSWER_S
from chess_snn.types import UInt64Array

DEFAULT_GAME: Final = "chess"
"""Game of commands where neither a network nor an option names one."""


def find_player(game: Game, text: str, simulations: int) -> Model | str:
    """The player of ``game`` that ``text`` names: a network, or the name of a fixed player.

    Raises:
        UsageError: there is no such player, or it plays another game.
    """
    if is_player_name(text):
        return make_player(game, text).name
    return find_model(text, game.spec.name, simulations)


def take_seat(
    game: Game, player: Model | str, num_games: int, num_threads: int | None, device: str,
    threads: ExitStack, engine_s: float = ANSWER_S,
) -> Player:
    """The player itself, for ``num_games`` at once; ``threads`` ends the threads it needs.

    ``num_threads`` of the network, or processes of the engine; None chooses automatically.
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
        wanted = find_model(networks[0], simulations=0).game
    return get_game(wanted or DEFAULT_GAME)


def find_model(text: str, game: str | None = None, simulations: int | None = None) -> Model:
    """The network that ``text`` names; see :func:`.references.find_model`."""
    return references.find_model(text, fetch_model, game=game, simulations=simulations)


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
