"""The recorder sorts interleaved plies; checked against games collected one by one."""

import dataclasses
import json
import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_games import plain_records

from chess_snn.data import GameRecords, concatenate
from chess_snn.data.records import START_KINDS
from chess_snn.games import get_game
from chess_snn.search import SearchResult
from chess_snn.self_play import SelfPlayStatistics, combine
from chess_snn.self_play.group import GameRecorder
from chess_snn.self_play.statistics import statistics_of

GAME = get_game("chess")
LENGTHS = [3, 1, 4, 2, 5]
TINY = 1e-3
"""Below 1/512."""


def test_interleaved_plies_become_whole_games_in_index_order():
    rng = np.random.default_rng(0)
    recorder = GameRecorder(len(LENGTHS), record_words=5)
    plies_of = [[] for _ in LENGTHS]
    for ply in range(max(LENGTHS)):
        # Rows come in any order, as they do when games that ended make room for later ones.
        games = rng.permutation([k for k, length in enumerate(LENGTHS) if ply < length])
        batch = GAME.allocate(len(games))
        batch.state[:] = rng.integers(2**64, size=batch.state.shape, dtype=np.uint64)
        targets = np.zeros(batch.legal_actions.shape, np.float32)
        for g in range(len(games)):
            slots = rng.choice(20, size=rng.integers(1, 6), replace=False)
            targets[g, slots] = rng.dirichlet(np.ones(len(slots)) * 20)
        result = SearchResult(
            actions=rng.integers(4672, size=len(games)).astype(np.int16),
            values_stm=rng.uniform(-1, 1, len(games)).astype(np.float32),
            policy_targets=targets,
            prior_entropies=np.zeros(len(games), np.float32),
            surprises=rng.exponential(size=len(games)).astype(np.float32),
        )
        for g, game in enumerate(games):
            slots = np.flatnonzero(targets[g])
            plies_of[game].append((
                batch.state[g, :5].copy(), result.actions[g], result.values_stm[g],
                result.surprises[g], batch.legal_actions[g, slots], targets[g, slots],
            ))
        recorder.add_ply(games, batch, result)
        batch.state[:] = 0  # the caller plays on in the same arrays
        games[:] = 0

    ends = {
        "outcomes_white": np.array([1, 0, -1, 0, 1], np.int8),
        "terminations": np.array([1, 0, 1, 2, 1], np.uint8),
        "cut_values_white": np.array([0, 0.5, 0, 0, 0], np.float32),
        "start_kinds": np.array([0, 2, 1, 0, 2], np.uint8),
    }
    records = recorder.finish(**ends)

    columns = list(zip(*(ply for plies in plies_of for ply in plies), strict=True))
    entries = [len(actions) for actions in columns[4]]
    expected = GameRecords(
        states=np.stack(columns[0]),
        actions=np.array(columns[1]),
        values_stm=np.array(columns[2]),
        surprises=np.array(columns[3]),
        target_offsets=np.cumsum([0, *entries]),
        target_actions=np.concatenate(columns[4]),
        target_weights=np.concatenate(columns[5]),
        game_offsets=np.cumsum([0, *LENGTHS]),
        **ends,
    )
    for field in fields(GameRecords):
        actual, wanted = getattr(records, field.name), getattr(expected, field.name)
        if field.name == "target_weights":  # divided by a sum of 1, up to rounding
            np.testing.assert_allclose(actual, wanted, rtol=1e-6)
        else:
            np.testing.assert_array_equal(actual, wanted, field.name)
        assert actual.dtype == wanted.dtype, field.name


def recorded_target(weights):
    """(actions, weights) that one position with these target weights leaves in the record."""
    records = recorded(weights)
    return records.target_actions.tolist(), records.target_weights


def recorded(weights, value=0.0, **options):
    """The record of one position with these target weights and this root value."""
    batch = GAME.allocate(1)
    batch.legal_actions[0] = np.arange(100, 100 + batch.legal_actions.shape[1])
    targets = np.zeros(batch.legal_actions.shape, np.float32)
    targets[0, : len(weights)] = weights
    recorder = GameRecorder(1, record_words=5, **options)
    recorder.add_ply(np.zeros(1, np.int64), batch, SearchResult(
        actions=np.zeros(1, np.int16),
        values_stm=np.float32([value]),
        policy_targets=targets,
        prior_entropies=np.zeros(1, np.float32),
        surprises=np.zeros(1, np.float32),
    ))
    return recorder.finish(
        outcomes_white=np.zeros(1, np.int8), terminations=np.ones(1, np.uint8),
        cut_values_white=np.zeros(1, np.float32), start_kinds=np.zeros(1, np.uint8),
    )


@pytest.mark.parametrize(("value_range", "value", "wanted"), [
    ((0.0, 1024.0), 1100.0, 1024.0), ((0.0, 1024.0), -0.5, 0.0), ((-1.0, 1.0), 0.7, 0.7),
])
def test_a_value_that_no_game_can_bring_is_bounded(value_range, value, wanted):
    records = recorded([1.0], value, value_range=value_range)
    assert records.values_stm[0] == np.float32(wanted)


def test_tiny_weights_are_left_out_and_the_others_sum_to_1():
    actions, weights = recorded_target([TINY, 0.6, TINY, TINY, 0.397, 0.0])
    assert actions == [101, 104]
    np.testing.assert_allclose(weights, [0.6 / 0.997, 0.397 / 0.997], rtol=1e-6)


def test_a_weight_of_exactly_one_512th_stays():
    actions, weights = recorded_target([1 / 512, 511 / 512])
    assert actions == [100, 101]
    np.testing.assert_array_equal(weights, np.float32([1 / 512, 511 / 512]))


def test_a_position_of_tiny_weights_keeps_the_largest():
    actions, weights = recorded_target([0.0001, 0.0005, 0.0002])
    assert actions == [101]
    np.testing.assert_array_equal(weights, [1])


@settings(max_examples=50)
@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=200))
def test_every_target_keeps_its_sum_and_loses_little(raw):
    given_weights = np.array(raw) / sum(raw)
    actions, weights = recorded_target(given_weights)
    left_out = np.setdiff1d(np.arange(len(raw)), np.array(actions) - 100)
    assert weights.sum() == pytest.approx(1, abs=1e-5)
    assert (given_weights[left_out] < 1 / 512).all()
    assert given_weights.argmax() + 100 in actions


# Statistics: rates from counts, and the union of parts.


SPEC = get_game("chess").spec
CODES = {name: code for code, name in enumerate(SPEC.terminations)}


VALUE, SURPRISE = -0.5, 0.25


def made_records(games):
    """Records of (plies, outcome, termination, start) a game; positions all hold the same."""
    plies, outcomes, endings, starts = zip(*games, strict=True)
    num_positions = sum(plies)
    return plain_records(
        plies, values_stm=np.full(num_positions, VALUE),
        surprises=np.full(num_positions, SURPRISE), outcomes_white=outcomes,
        terminations=[CODES[ending] for ending in endings],
        start_kinds=[START_KINDS.index(start) for start in starts],
    )


FIRST = made_records([
    (10, 1, "checkmate", "ordinary"), (40, 0, "ongoing", "ordinary"),
    (25, -1, "checkmate", "practice"), (5, -1, "checkmate", "ordinary"),
])
SECOND = made_records([
    (7, -1, "checkmate", "restart"), (31, 0, "stalemate", "practice"),
    (12, 0, "ongoing", "practice"), (20, 0, "stalemate", "ordinary"),
])
RESTARTED = made_records([(9, 1, "checkmate", "restart")])


def statistics(records, entropy=6.0, uniform=8.0, seconds=2.0, network=1.5):
    return statistics_of(
        SPEC, records, entropy_sum=entropy, uniform_entropy_sum=uniform, seconds=seconds,
        network_seconds=network,
    )


def test_statistics_of_four_games_by_hand():
    counted = statistics(FIRST)
    assert counted == SelfPlayStatistics(
        games=4, positions=80, plies_min=5, plies_max=40, white_wins=1, black_wins=2,
        terminations={"checkmate": 3, "ply_cap": 1},
        ordinary_games=3, ordinary_draws=1, ordinary_positions=55,
        practice_games=1, practice_wins=1, abs_value_sum=40.0, surprise_sum=20.0,
        entropy_sum=6.0, uniform_entropy_sum=8.0, seconds=2.0, network_seconds=1.5,
    )
    wanted = {
        "plies_mean": 20.0, "white_rate": 1 / 4, "draw_rate": 1 / 4, "black_rate": 1 / 2,
        "truncated_rate": 1 / 4, "ordinary_draw_rate": 1 / 3,
        "practice_win_rate": 1.0, "mean_abs_value": 0.5,
        "entropy_ratio": 0.75, "network_share": 0.75,
    }
    assert {name: getattr(counted, name) for name in wanted} == pytest.approx(wanted)


def test_a_cut_practice_game_is_not_won():
    counted = statistics(SECOND)
    assert (counted.practice_games, counted.practice_wins) == (2, 0)
    assert counted.practice_win_rate == 0.0
    assert counted.ordinary_draw_rate == 1.0


def test_rates_of_games_there_are_none_of_are_not_numbers():
    counted = statistics(RESTARTED)
    for name in ("ordinary_draw_rate", "practice_win_rate"):
        assert math.isnan(getattr(counted, name))


def test_parts_combine_to_the_statistics_of_their_union():
    parts = [statistics(FIRST), statistics(SECOND, entropy=1, uniform=4, seconds=3, network=0.5)]
    union = statistics(concatenate([FIRST, SECOND]), 7.0, 12.0, 5.0, 2.0)
    assert combine(parts) == union
    assert combine(parts[::-1]) == union
    assert combine(parts[:1]) == parts[0]


def test_draw_rate_is_zero_where_every_game_was_won():
    counted = dataclasses.replace(statistics(FIRST), games=49, white_wins=17, black_wins=32)
    assert counted.draw_rate == 0.0


def test_statistics_survive_json():
    counted = statistics(FIRST)
    assert SelfPlayStatistics.from_json(json.loads(json.dumps(counted.to_json()))) == counted


def test_clocks_and_entropies_of_nothing_have_a_ratio():
    counted = statistics(FIRST, entropy=0.0, uniform=0.0, seconds=0.0, network=0.0)
    assert counted.entropy_ratio == 1.0  # every move was forced
    assert counted.network_share == 0.0
