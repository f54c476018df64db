"""Random games to measure on are legal games; what a stored one takes."""

import numpy as np
import pytest

from benchmarks import store
from benchmarks.random_data import play_random_games, with_search_targets
from benchmarks.report import Report
from chess_snn.games import get_game

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


def test_random_games_are_legal_games():
    records = play_random_games(GAME, num_games=8, max_plies=40)
    assert records.num_games == 8
    assert records.num_positions == 8 * 40  # nobody is mated within 20 moves with this seed
    legal_actions, num_legal = GAME.legal_actions(records.states)
    for row in range(records.num_positions):
        assert records.actions[row] in legal_actions[row, : num_legal[row]]


@pytest.mark.parametrize("seed", range(20))
def test_the_short_games_of_a_campaign_of_many_shards_have_equal_lengths(seed):
    assert play_random_games(GAME, 1, 8, seed).num_positions == 8


def test_search_targets_are_legal_and_sum_to_one():
    searched = with_search_targets(GAME, play_random_games(GAME, num_games=4, max_plies=30))
    assert np.diff(searched.target_offsets).max() <= 32
    sums = np.add.reduceat(searched.target_weights, searched.target_offsets[:-1])
    np.testing.assert_allclose(sums, 1, atol=1e-5)
