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


def test_without_search_each_move_follows_the_one_before():
    found = asked(simulations=0, num_games=1, num_positions=1000)
    assert not found.previous[0].any()
    assert np.array_equal(found.previous[1:], found.planes[:-1])
    assert not found.before[:2].any()
    assert np.array_equal(found.before[2:], found.planes[:-2])


def test_lines_of_a_search_lead_two_plies_back():
    """Two plies change the squares of at most eight pieces; one turns the view of the board."""
    found = asked(simulations=16, num_positions=10_000)
    has_before = found.before.any(1)
    assert 0 < (~has_before).sum() < 0.3 * len(found.planes)
    known = {row.tobytes() for row in found.planes}
    assert {row.tobytes() for row in found.before[has_before]} <= known
    pieces = (found.planes ^ found.before)[has_before, :12]
    changed = np.bitwise_count(pieces).sum(1)
    assert changed.min() >= 1
    assert changed.max() <= 8
    others = np.bitwise_count((found.planes ^ found.previous)[has_before, :12]).sum(1)
    assert others.max() > 8
    assert (~found.previous.any(1)).sum() == 3  # the first of each game


def test_in_2048_a_line_leads_one_decision_back():
    found = asked("2048", simulations=16, num_positions=10_000)
    nature = found.planes[:, 16] != 0
    has_before = found.before.any(1)
    assert has_before.sum() >= len(found.planes) - 3
    known = {row.tobytes() for row in found.planes}
    same = nature == (found.before[:, 16] != 0)
    assert same[has_before & ~nature].all()
    assert {row.tobytes() for row in found.before[has_before]} <= known
