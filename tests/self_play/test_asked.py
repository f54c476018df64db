"""Positions that a search asks about, counted and sampled."""

import numpy as np
import pytest

from chess_snn.games import get_game
from chess_snn.nets import build_network, make_evaluator, net_config
from chess_snn.search import SearchSettings
from chess_snn.self_play import asked_positions

SHAPE = {"blocks": 1, "channels": 8, "value_channels": 2, "value_hidden": 8}


def asked(name="chess", **changes):
    game = get_game(name)
    network = build_network(game.spec, net_config("tiny", **SHAPE), seed=0)
    numbers = {
        "simulations": 4, "num_games": 3, "num_positions": 20, "max_plies": 30, "seed": 1,
    }
    with make_evaluator(network, precision="fp32") as evaluator:
        return asked_positions(game, evaluator, SearchSettings(), **(numbers | changes))


def test_without_search_each_move_asks_once():
    found = asked(simulations=0)
    assert found.evaluations == found.moves
    assert found.moves_per_game == found.moves / 3 <= 30
    assert found.planes.shape == (20, get_game("chess").spec.all_planes)


@pytest.mark.parametrize("name", ["chess", "2048"])
def test_a_search_asks_about_a_root_and_at_most_once_a_simulation(name):
    found = asked(name)
    assert 1 < found.evaluations_per_move <= 5
    assert found.evaluations_per_move == found.evaluations / found.moves


def test_the_sample_is_the_seeds_and_of_those_asked_about():
    found, again, everything = asked(), asked(), asked(num_positions=10_000)
    assert np.array_equal(found.planes, again.planes)
    assert len(everything.planes) == everything.evaluations == found.evaluations
    rows = {row.tobytes() for row in everything.planes}
    assert {row.tobytes() for row in found.planes} <= rows
    # Not the first ones alone.
    places = [row.tobytes() for row in everything.planes].index(found.planes[-1].tobytes())
    assert places > len(found.planes)
