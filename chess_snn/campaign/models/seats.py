"""A network as a player: with its evaluator, its search and the random moves asked for."""

from contextlib import ExitStack
from dataclasses import replace

from chess_snn.campaign.models.references import Model
from chess_snn.evaluation.named_players import DilutedPlayer
from chess_snn.evaluation.players import Player, SearchPlayer
from chess_snn.games.base import Game
from chess_snn.nets import make_evaluator
from chess_snn.search import make_match_search


def seat_network(
    game: Game, model: Model, num_games: int, num_threads: int | None, device: str,
    threads: ExitStack,
) -> Player:
    """``model`` as a player of ``num_games`` at once; ``threads`` ends the threads it needs.

    ``num_threads`` evaluate positions on a CPU; None takes what is of use.
    """
    evaluator = threads.enter_context(make_evaluator(
        model.load(game), device=device, precision=model.precision, num_threads=num_threads,
    ))
    search = make_match_search(
        game, evaluator, model.search, simulations=model.simulations, num_games=num_games
    )
    undiluted = SearchPlayer(search, replace(model, random_percent=None).name)
    percent = model.random_percent
    return undiluted if percent is None else DilutedPlayer(undiluted, percent)
