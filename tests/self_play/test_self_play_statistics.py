"""Statistics: rates from counts, and the union of parts."""

import dataclasses
import json
import math

import numpy as np
import pytest
from made_games import plain_records

from chess_snn.data import concatenate
from chess_snn.data.records import START_KINDS
from chess_snn.games import get_game
from chess_snn.self_play import SelfPlayStatistics, combine
from chess_snn.self_play.statistics import statistics_of

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
    (25, -1, "checkmate", "practice"), (5, -1, "ongoing", "ordinary"),
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
        terminations={"checkmate": 2, "ply_cap": 1, "resigned": 1},
        ordinary_games=3, ordinary_draws=1, ordinary_positions=55,
        practice_games=1, practice_wins=1, abs_value_sum=40.0, surprise_sum=20.0,
        entropy_sum=6.0, uniform_entropy_sum=8.0, seconds=2.0, network_seconds=1.5,
    )
    assert counted.resigned == 1
    assert counted.metrics() == pytest.approx({
        "games": 4, "positions": 80, "plies_mean": 20.0, "plies_min": 5, "plies_max": 40,
        "white_rate": 1 / 4, "draw_rate": 1 / 4, "black_rate": 1 / 2, "truncated_rate": 1 / 4,
        "ordinary_draw_rate": 1 / 3, "ordinary_plies_mean": 55 / 3, "practice_win_rate": 1.0,
        "mean_abs_value": 0.5, "surprise_mean": 0.25, "entropy_ratio": 0.75,
        "network_share": 0.75, "ended_checkmate": 1 / 2, "ended_ply_cap": 1 / 4,
        "ended_resigned": 1 / 4,
    })


def test_a_cut_practice_game_is_not_won():
    counted = statistics(SECOND)
    assert (counted.practice_games, counted.practice_wins) == (2, 0)
    assert counted.practice_win_rate == 0.0
    assert counted.ordinary_draw_rate == 1.0
    assert counted.resigned == 0


def test_rates_of_games_there_are_none_of_are_left_out():
    counted = statistics(RESTARTED)
    assert math.isnan(counted.ordinary_draw_rate)
    missing = {"ordinary_draw_rate", "ordinary_plies_mean", "practice_win_rate", "ended_ply_cap",
               "ended_resigned"}
    assert statistics(FIRST).metrics().keys() - counted.metrics().keys() == missing


def test_parts_combine_to_the_statistics_of_their_union():
    parts = [statistics(FIRST), statistics(SECOND, entropy=1, uniform=4, seconds=3, network=0.5)]
    union = statistics(concatenate([FIRST, SECOND]), 7.0, 12.0, 5.0, 2.0)
    assert combine(parts) == union
    assert combine(parts[::-1]) == union
    assert combine(parts[:1]) == parts[0]


@pytest.mark.parametrize("white_wins", range(50))
def test_draw_rate_is_zero_where_every_game_was_won(white_wins):
    counted = dataclasses.replace(
        statistics(FIRST), games=49, white_wins=white_wins, black_wins=49 - white_wins
    )
    assert counted.draw_rate == 0.0


def test_statistics_survive_json():
    counted = statistics(FIRST)
    assert SelfPlayStatistics.from_json(json.loads(json.dumps(counted.to_json()))) == counted


def test_clocks_and_entropies_of_nothing_have_a_ratio():
    counted = statistics(FIRST, entropy=0.0, uniform=0.0, seconds=0.0, network=0.0)
    assert counted.entropy_ratio == 1.0  # every move was forced
    assert counted.network_share == 0.0
