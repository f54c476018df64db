"""Benchmarks: their random games, and what they measure on a CPU."""

import numpy as np
import pytest

from benchmarks import env, net, self_play, store
from benchmarks.harness import Report
from benchmarks.random_data import play_random_games, random_positions, with_search_targets
from chess_snn.games import get_game
from chess_snn.nets import build_network, make_evaluator, net_config
from chess_snn.nets.cpu.dot_tile import DOT_PRODUCT

GAME = get_game("chess")


def test_a_position_takes_at_most_forty_bytes():
    """The one bar that does not depend on the load of the machine."""
    report = Report("store")
    store.run(report, quick=True)
    bars = {m.unit: m for m in report.measurements if m.passes is not None}
    assert bars["bytes/position"].at_most == 40
    assert bars["bytes/position"].passes
    assert {m.at_least for m in report.measurements} == {None, 500_000, 1_000_000}
    assert all(m.value > 0 for m in report.measurements)


OPTIONS = {net: {"part": ["kernel"]}}
NEEDS_DOT_PRODUCT = pytest.mark.skipif(
    DOT_PRODUCT is None, reason="this processor has no instruction for the kernel"
)


@pytest.mark.parametrize(
    "module", [
        env, pytest.param(net, marks=NEEDS_DOT_PRODUCT),
        pytest.param(self_play, marks=pytest.mark.slow),
    ],
    ids=lambda module: module.__name__,
)
def test_it_runs_and_every_figure_is_positive(module):
    report = Report("positive")
    module.run(report, quick=True, **OPTIONS.get(module, {}))
    assert report.measurements
    assert all(measurement.value > 0 for measurement in report.measurements)


def test_random_games_are_legal_games():
    records = play_random_games(GAME, num_games=8, max_plies=40)
    assert records.num_games == 8
    assert records.num_positions == 8 * 40  # with this seed no game ends within 20 moves
    legal_actions, num_legal = GAME.legal_actions(records.states)
    for row in range(records.num_positions):
        assert records.actions[row] in legal_actions[row, : num_legal[row]]


def test_the_short_games_of_a_campaign_of_many_shards_have_equal_lengths():
    assert {play_random_games(GAME, 1, 8, seed).num_positions for seed in range(20)} == {8}


def test_search_targets_are_legal_and_sum_to_one():
    searched = with_search_targets(GAME, play_random_games(GAME, num_games=4, max_plies=30))
    assert np.diff(searched.target_offsets).max() <= 32
    sums = np.add.reduceat(searched.target_weights, searched.target_offsets[:-1])
    np.testing.assert_allclose(sums, 1, atol=1e-5)


# The benchmark of the network times neurons without changing what they answer.


def test_timed_neurons_change_no_answer():
    positions = random_positions(12)
    network = build_network(GAME.spec, net_config("tiny"), seed=0)
    with make_evaluator(network) as evaluator:
        expected = positions.ask(evaluator)
        evaluator.network.neurons = net.TimedNeurons(evaluator.network.neurons)
        timed = positions.ask(evaluator)
        assert 0 < evaluator.network.neurons.seconds < evaluator.network_seconds
    assert (timed.legal_logits == expected.legal_logits).all()
    assert (timed.wdl_stm == expected.wdl_stm).all()
