"""Statistics: rates from counts, and the union of parts."""

import dataclasses
import json

import numpy as np
import pytest

from chess_snn.data import GameRecords, concatenate
from chess_snn.games import get_game
from chess_snn.self_play import SelfPlayStatistics, combine
from chess_snn.self_play.statistics import statistics_of

SPEC = get_game("chess").spec
CODES = {name: code for code, name in enumerate(SPEC.terminations)}


def made_records(games):
    """Records of (plies, outcome, termination) a game; their positions hold nothing."""
    plies, outcomes, endings = zip(*games, strict=True)
    N = sum(plies)
    return GameRecords(
        states=np.zeros((N, SPEC.record_words), np.uint64),
        actions=np.zeros(N, np.int16),
        values_stm=np.zeros(N, np.float32),
        target_offsets=np.arange(N + 1),
        target_actions=np.zeros(N, np.int16),
        target_weights=np.ones(N, np.float32),
        game_offsets=np.cumsum([0, *plies]),
        outcomes_white=np.array(outcomes, np.int8),
        terminations=np.array([CODES[ending] for ending in endings], np.uint8),
    )


FIRST = made_records([(10, 1, "checkmate"), (40, 0, "ongoing"), (25, -1, "checkmate")])
SECOND = made_records([(7, -1, "checkmate"), (31, 0, "stalemate")])


def statistics(records, entropy=6.0, uniform=8.0, seconds=2.0, network=1.5):
    return statistics_of(
        SPEC, records, entropy_sum=entropy, uniform_entropy_sum=uniform, seconds=seconds,
        network_seconds=network,
    )


def test_statistics_of_three_games_by_hand():
    counted = statistics(FIRST)
    assert counted == SelfPlayStatistics(
        games=3, positions=75, plies_min=10, plies_max=40, white_wins=1, black_wins=1,
        terminations={"checkmate": 2, "ply_cap": 1}, entropy_sum=6.0, uniform_entropy_sum=8.0,
        seconds=2.0, network_seconds=1.5,
    )
    assert counted.metrics() == pytest.approx({
        "games": 3, "positions": 75, "plies_mean": 25.0, "plies_min": 10, "plies_max": 40,
        "white_rate": 1 / 3, "draw_rate": 1 / 3, "black_rate": 1 / 3, "entropy_ratio": 0.75,
        "network_share": 0.75, "ended_checkmate": 2 / 3, "ended_ply_cap": 1 / 3,
    })


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
