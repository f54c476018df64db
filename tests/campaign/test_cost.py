"""The cost of an iteration: closed forms, and a measurement of the real thing."""

import pytest

from chess_snn.campaign import load_config
from chess_snn.campaign.machine.cost import Pace, measure_pace, predict, predict_campaign

PACE = Pace(evaluations_per_s=1700.0, samples_per_s=500.0)


def config(*settings):
    return load_config("smoke", settings=[
        "search.simulations_first=16", "search.simulations_last=33", "training.batch_size=100",
        "training.presentations=2.0", *settings,
    ])


def test_every_simulation_and_the_root_are_one_evaluation_each():
    cost = predict(config(), PACE, positions=1000, simulations=16)
    assert cost.self_play_s == pytest.approx(1000 * 17 / 1700)
    assert cost.training_s == pytest.approx(1000 * 2 / 500)
    assert cost.iteration_s == pytest.approx(14.0)
    assert cost.positions_per_s == pytest.approx(1000 / 14)


def test_policy_only_games_ask_once_a_position():
    policy_only = config("search.kind=policy", "training.policy_loss=advantage")
    assert predict(policy_only, PACE, 1700, 16).self_play_s == pytest.approx(1.0)


def test_a_campaign_gets_slower_as_its_simulations_grow():
    settings = config("self_play.games_per_iteration=100", "self_play.games_per_shard=100")
    first, last = predict_campaign(settings, PACE, mean_plies=50.0)
    assert first.positions == last.positions == 5000
    assert last.self_play_s / first.self_play_s == pytest.approx(34 / 17)
    assert last.training_s == first.training_s


def test_paces_are_measured():
    told = []
    pace = measure_pace(
        config("self_play.concurrent_games=8", "training.batch_size=16",
               "search.simulations_first=4", "execution.device=cpu"),
        on_progress=lambda *done: told.append(done),
    )
    assert pace.evaluations_per_s > 0
    assert pace.samples_per_s > 0
    assert told == [(1, 2), (2, 2)]
