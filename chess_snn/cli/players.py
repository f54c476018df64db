"""The players of ``chess-snn match``: fixed ones by name, networks with a search budget."""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import typer

from chess_snn.campaign.models.references import (
    KNOWN_MODELS,
    Model,
    is_registered,
    looking_for,
    split_generation,
)
from chess_snn.cli.models import find_model
from chess_snn.cli.one_game import DEFAULT_GAME
from chess_snn.config import check_range
from chess_snn.errors import UsageError
from chess_snn.evaluation import (
    KNOWN_PLAYERS,
    DilutedPlayer,
    EngineSettings,
    Player,
    PlayerFacts,
    SearchPlayer,
    is_player_name,
    make_player,
    split_dilution,
)
from chess_snn.games import GAME_NAMES, get_game
from chess_snn.games.base import Game
from chess_snn.nets import make_evaluator
from chess_snn.search import MAX_SIMULATIONS, make_match_search

DEFAULT_ENGINE_S: Final = EngineSettings().answer_s
"""Seconds that an engine may take for a move."""

GameOption = Annotated[
    str, typer.Option("--game", help=f"{' or '.join(GAME_NAMES)}; by default the networks' game.")
]
_BUDGET = re.compile(r"(?P<model>.+):(?P<simulations>[0-9]{1,12})")


@dataclass(frozen=True, slots=True)
class Entrant:
    """A player of a match before anything heavy is loaded."""

    name: str
    model: Model | None
    """None: the fixed player of that name."""
    simulations: int
    """Of a network, a move; 0 plays its policy without search."""
    random_percent: float | None = None
    """Of a network, moves made at random; ``name`` does not tell."""

    @property
    def facts(self) -> PlayerFacts:
        """For the tags of its games."""
        if self.model is None:
            return PlayerFacts()
        return PlayerFacts(self.model.generation, self.simulations, self.model.config_digest)

    def take_seat(
        self, game: Game, num_games: int, num_threads: int | None, device: str, threads: ExitStack,
        engine_s: float = DEFAULT_ENGINE_S,
    ) -> Player:
        """The player, for ``num_games`` at once; ``threads`` ends the threads it needs.

        ``num_threads`` of the network, or processes of the engine; None takes what is of use.
        """
        if self.model is None:
            return make_player(game, self.name, EngineSettings(num_threads or 0, answer_s=engine_s))
        evaluator = threads.enter_context(make_evaluator(
            self.model.load(game), device=device, precision=self.model.precision,
            num_threads=num_threads,
        ))
        search = make_match_search(
            game, evaluator, self.model.search, simulations=self.simulations, num_games=num_games
        )
        player = SearchPlayer(search, self.name)
        percent = self.random_percent
        return player if percent is None else DilutedPlayer(player, percent)


def find_entrant(game: Game | None, text: str, simulations: int) -> Entrant:
    """The player that ``text`` names.

    Args:
        game: that is played; None: whatever a network plays, chess for the others.
        text: one of ``KNOWN_PLAYERS``, or a network (``KNOWN_MODELS``), which may be followed by
            ``:N`` for its own number of simulations; ``~P`` makes P % of its moves random.
        simulations: of a network that does not say.

    Raises:
        UsageError: there is no such player, or it plays another game.
    """
    if is_player_name(text):
        return Entrant(make_player(game or get_game(DEFAULT_GAME), text).name, None, 0)
    inner, percent = split_dilution(text)
    with looking_for(text):
        if percent is not None and not Path(text).exists():
            check_range(f"percent of random moves in {text!r}", percent, gt=0.0, lt=100.0)
            return replace(_network(game, inner, simulations), random_percent=percent)
        return _network(game, text, simulations)


def game_of_players(texts: Sequence[str], wanted: str) -> Game:
    """The game called ``wanted``; where that is empty, the one that a network among them plays.

    Chess, where there is no network.

    Raises:
        UsageError: there is no such player, or no such game.
    """
    networks = [text for text in texts if not is_player_name(text)]
    if not wanted and networks:
        model = find_entrant(None, networks[0], 0).model
        wanted = (model and model.game) or DEFAULT_GAME
    return get_game(wanted or DEFAULT_GAME)


def _network(game: Game | None, text: str, simulations: int) -> Entrant:
    budget = _BUDGET.fullmatch(text)
    if budget is not None and not Path(text).exists():
        text, simulations = budget["model"], int(budget["simulations"])
    check_range(f"simulations of {text}", simulations, ge=0, le=MAX_SIMULATIONS)
    path, _ = split_generation(text)
    if not path.exists() and not is_registered(text):
        raise UsageError(
            f"unknown player {text!r}; known: {', '.join(KNOWN_PLAYERS)}, or a network: "
            f"{KNOWN_MODELS}; behind a network :N is its number of simulations"
        )
    model = find_model(text, None if game is None else game.spec.name)
    return Entrant(f"{model.label}:{simulations}", model, simulations)
