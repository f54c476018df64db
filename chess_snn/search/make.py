"""A search from its settings."""

from chess_snn.config import check_range
from chess_snn.games.base import Game
from chess_snn.nets.evaluator import Evaluator
from chess_snn.search.base import Search
from chess_snn.search.descent import GUMBEL_RULE, PUCT_RULE
from chess_snn.search.gumbel import GumbelRoot
from chess_snn.search.policy import PolicySearch
from chess_snn.search.puct import PuctRoot
from chess_snn.search.settings import MAX_SIMULATIONS, SearchSettings
from chess_snn.search.tree_search import RootRule, TreeSearch


def make_search(
    game: Game, evaluator: Evaluator, settings: SearchSettings, *, simulations: int, num_games: int
) -> Search:
    """The search that ``settings`` describe.

    Args:
        game: to be searched.
        evaluator: the network.
        settings: of the search.
        simulations: a position; 0, or ``kind = "policy"``, asks the network once and grows no tree.
        num_games: the largest batch it will be given.

    Raises:
        ConfigError: the simulations are out of range or need more memory than the settings allow.
    """
    check_range("simulations", simulations, ge=0, le=MAX_SIMULATIONS)
    if settings.kind == "policy" or simulations == 0:
        return PolicySearch(game, evaluator)
    return make_tree_search(
        game, evaluator, settings, simulations=simulations, num_games=num_games
    )


def make_match_search(
    game: Game, evaluator: Evaluator, settings: SearchSettings, *, simulations: int, num_games: int
) -> Search:
    """As :func:`make_search`, with a tree from 1 simulation on, whatever ``kind`` says."""
    make = make_tree_search if simulations else make_search
    return make(game, evaluator, settings, simulations=simulations, num_games=num_games)


def make_tree_search(
    game: Game, evaluator: Evaluator, settings: SearchSettings, *, simulations: int, num_games: int
) -> TreeSearch:
    """As :func:`make_search`, with a tree whatever ``kind`` says: "policy" grows Gumbel trees."""
    check_range("simulations", simulations, ge=1, le=MAX_SIMULATIONS)
    rule = settings.rule(PUCT_RULE if settings.kind == "puct" else GUMBEL_RULE)
    root: RootRule
    if settings.kind == "puct":
        root = PuctRoot(settings.noise_alpha, settings.noise_share)
    else:
        considered = min(settings.num_considered(simulations), game.spec.max_legal)
        root = GumbelRoot(rule, considered, simulations, num_games, game.spec.max_legal)
    return TreeSearch(
        game, evaluator, rule, root, simulations=simulations, num_games=num_games,
        discount=settings.discount, memory_mib=settings.memory_mib,
        finds_wins=settings.finds_wins,
    )
