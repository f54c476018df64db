"""The scale on which networks of different campaigns are compared."""

from dataclasses import replace

import pytest
from simulated_alias import RULES, simulate
from small_campaigns import make_campaign, matches_of, receipt_of

from chess_snn.campaign import load_config
from chess_snn.campaign.store.match_facts import (
    LadderTestFacts,
    MeanInterval,
    PairedPoints,
    PointsFacts,
)
from chess_snn.campaign.strength.ratings import Strength, strength_of
from chess_snn.known import PRESETS

ELO = Strength("elo", "ladder 1", 16, 402.0, 310.0, 495.0, num_games=40)
REPORT = LadderTestFacts(
    player="gen-000001@16", simulations=16, scale="ladder 1", num_games=40, score=0.5, elo=402.0,
    elo_low=310.0, elo_high=495.0, rungs=[], bracket=["random"], start="random",
    ended_by="interval", notice=None,
)
POINTS = PointsFacts(
    14_000.0, 12_500.0, 15_500.0, games=30, median=13_000.0, best=20_000.0, plies=500.0, reached={}
)


@pytest.fixture
def receipt(tmp_path):
    return receipt_of(make_campaign(tmp_path / "c"), 0)


def test_a_ladder_test_gives_the_strength(receipt):
    config = load_config("smoke")
    assert strength_of(config, receipt) is None
    assert strength_of(config, replace(receipt, ladder_test=REPORT)) == ELO


def test_a_game_of_one_player_has_points(receipt):
    played = matches_of(1)[0]
    points = PairedPoints(POINTS, POINTS, MeanInterval(0.0, -1.0, 1.0))
    matches = [replace(played, points=points)]
    found = strength_of(load_config("smoke-2048"), replace(receipt, matches=matches))
    assert (found.measure, found.simulations, found.num_games) == ("points", 4, 30)
    assert found.figures() == {
        "points": 14_000.0, "points_low": 12_500.0, "points_high": 15_500.0, "games": 30,
        "search_budget": 4,
    }


@pytest.mark.parametrize("strength", [ELO, replace(ELO, low=None), replace(ELO, measure="points")])
def test_figures_and_back(strength):
    assert Strength.of_figures("ladder 1", strength.figures()) == strength
    assert Strength.of_figures("ladder 1", {"generation": 3.0}) is None


def test_presets_of_one_game_measure_on_one_scale():
    budgets: dict[str, set[int]] = {}
    for name in PRESETS:
        config = load_config(name)
        if config.campaign.game == "chess":
            assert config.evaluation.ladder_test, name
            budget = config.ladder_test_simulations
        else:
            budget = config.evaluation.simulations
        budgets.setdefault(config.campaign.game, set()).add(budget)
    assert budgets == {"chess": {16}, "2048": {4}}


def test_the_lower_bound_is_a_good_rule_in_simulated_stores():
    found = {rule: simulate(rule, 300, seed=2, behind=300) for rule in RULES}
    assert found["lower bound"].regret == min(outcome.regret for outcome in found.values())
    assert found["lower bound"].regret < 0.1 * found["last"].regret
    assert found["lower bound"].worse < 0.02 < found["last"].worse
