import json

import numpy as np
import pytest

from chess_snn.bench import store
from chess_snn.games import get_game


@pytest.fixture(scope="module")
def report():
    return store.run(quick=True)


def test_the_bars_of_the_store_are_measured(report):
    bars = {m.unit: m for m in report.measurements if m.passes is not None}
    assert bars["bytes/position"].at_most == 40
    assert {m.at_least for m in report.measurements} == {None, 500_000, 1_000_000}
    assert all(m.value > 0 for m in report.measurements)
    json.loads(report.to_json())


def test_a_position_takes_at_most_forty_bytes(report):
    """The one bar that does not depend on what else the machine does."""
    (measured,) = (m for m in report.measurements if m.at_most == 40)
    assert measured.passes


def test_random_games_are_legal_games():
    game = get_game("chess")
    records = store.play_random_games(game, num_games=8, ply_cap=40)
    assert records.num_games == 8
    assert records.num_positions == 8 * 40  # nobody is mated within 20 moves with this seed
    legal_actions, num_legal = game.legal_actions(records.states)
    for row in range(records.num_positions):
        assert records.actions[row] in legal_actions[row, : num_legal[row]]


def test_search_targets_are_legal_and_sum_to_one():
    game = get_game("chess")
    records = store.play_random_games(game, num_games=4, ply_cap=30)
    searched = store.with_search_targets(game, records)
    lengths = np.diff(searched.target_offsets)
    assert lengths.max() <= 32
    sums = np.add.reduceat(searched.target_weights, searched.target_offsets[:-1])
    np.testing.assert_allclose(sums, 1, atol=1e-5)
