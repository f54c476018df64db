"""Who gives up, the calibrated threshold, and what a truncated game counts as."""

import math
from dataclasses import replace

import numpy as np
import pytest
from made_games import plain_records
from material_search import MaterialSearch
from plain_streams import game_unit

from chess_snn.errors import ConfigError
from chess_snn.games import ONGOING, get_game
from chess_snn.self_play import RESIGNED, SelfPlaySettings, calibrate_threshold, play_games
from chess_snn.self_play.resignation import (
    LEAST_RESIGNATIONS,
    THRESHOLDS,
    ResignationWatch,
    cut_values_white,
    is_resigned,
)

GAME = get_game("chess")
WHITE_MOVES = GAME.parse_state("4k3/8/8/8/8/8/8/4K2R w K - 0 1")[:5]
BLACK_MOVES = GAME.parse_state("4k3/8/8/8/8/8/8/4K2R b K - 0 1")[:5]
CHECKMATE = GAME.spec.terminations.index("checkmate")
STALEMATE = GAME.spec.terminations.index("stalemate")
SETTINGS = SelfPlaySettings(max_plies_first=160, concurrent_games=32, practice_share_first=0.3)
THRESHOLD = -0.85
NUM_GAMES = 80


def made_records(games):
    """Records of (values_stm, outcome_white, termination, white begins) a game."""
    values, outcomes, codes, begins = zip(*games, strict=True)
    lengths = [len(game) for game in values]
    states = [
        WHITE_MOVES if (ply % 2 == 0) == first else BLACK_MOVES
        for length, first in zip(lengths, begins, strict=True) for ply in range(length)
    ]
    return plain_records(
        lengths, states=np.stack(states), values_stm=np.concatenate(values),
        outcomes_white=outcomes, terminations=codes,
    )


def first_resignation(records, game, threshold):
    """(ply, side) of the side that gives up first, by walking the game; None if nobody does."""
    start, end = records.game_offsets[game : game + 2]
    plies = range(start, end if records.terminations[game] == ONGOING else end - 1)
    low = [0, 0]
    for row in plies:
        side = GAME.side_to_move(records.states[row : row + 1])[0]
        low[side] = low[side] + 1 if records.values_stm[row] < np.float32(threshold) else 0
        if low[side] == 2:
            return row - start, side
    return None


def brute_force(records, error_limit):
    for threshold in sorted(THRESHOLDS, reverse=True):
        resigned, mistakes = 0, 0
        for game in range(records.num_games):
            outcome = records.outcomes_white[game]
            if records.terminations[game] == ONGOING and outcome != 0:
                continue
            found = first_resignation(records, game, threshold)
            if found is not None:
                resigned += 1
                mistakes += outcome != (-1 if found[1] == 0 else 1)
        if resigned >= LEAST_RESIGNATIONS and mistakes <= error_limit * resigned:
            return threshold
    return None


def drifting_games(rng, num_games):
    """Games whose values drift to one side, which wins the surer the further they drift."""
    games = []
    for _ in range(num_games):
        length = int(rng.integers(1, 30))
        begins = bool(rng.integers(2))
        white = np.tanh(np.cumsum(rng.normal(0, 0.5, length)))
        signs = np.where((np.arange(length) % 2 == 0) == begins, 1, -1)
        outcome, code = 0, int(rng.choice([ONGOING, STALEMATE]))
        if rng.random() < abs(white[-1]):
            outcome, code = int(np.sign(white[-1])), CHECKMATE
        elif rng.random() < 0.1:
            outcome, code = int(rng.choice([-1, 1])), ONGOING  # resigned
        games.append((white * signs, outcome, code, begins))
    return games


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_calibration_is_the_brute_force(seed):
    rng = np.random.default_rng(seed)
    records = made_records(drifting_games(rng, 400))
    limits = (0.001, 0.1, 0.2, 0.25, 0.3, 0.4, 0.9)
    found = [calibrate_threshold(GAME, records, limit) for limit in limits]
    assert found == [brute_force(records, limit) for limit in limits]
    assert len(set(found)) >= 3  # the limit matters


def lost(num_games, value):
    """Games in which white's value is ``value`` and white loses."""
    values = [0.0, 0.1, value, 0.1, value, 0.1]
    return [(values, -1, CHECKMATE, True)] * num_games


def test_fewer_games_than_the_least_number_say_nothing():
    assert calibrate_threshold(GAME, made_records(lost(LEAST_RESIGNATIONS - 1, -0.8)), 0.5) is None
    enough = made_records(lost(LEAST_RESIGNATIONS, -0.8))
    assert calibrate_threshold(GAME, enough, 0.5) == max(THRESHOLDS)


def test_games_in_which_nobody_despairs_say_nothing():
    assert calibrate_threshold(GAME, made_records(lost(500, -0.4)), 0.5) is None


def test_cut_games_count_as_mistakes_and_lower_the_threshold():
    cut = [([0.0, 0.1, -0.7, 0.1, -0.7, 0.1], 0, ONGOING, True)] * 20
    records = made_records(lost(100, -0.9) + cut)
    assert calibrate_threshold(GAME, records, 0.15) == -0.70  # strictly below resigns
    assert calibrate_threshold(GAME, records, 0.2) == max(THRESHOLDS)


def test_resigned_games_say_nothing():
    values, outcome, _, begins = lost(1, -0.9)[0]
    resigned = [(values, outcome, ONGOING, begins)] * 500
    assert calibrate_threshold(GAME, made_records(resigned), 0.5) is None
    mistaken = [(values, -outcome, ONGOING, begins)] * 500
    records = made_records(mistaken + lost(60, -0.9))
    assert calibrate_threshold(GAME, records, 0.01) == max(THRESHOLDS)


def test_one_bad_search_is_not_enough():
    records = made_records([([-0.9, 0, 0.5, 0, -0.9, -0.9, 0.5, 0], -1, CHECKMATE, True)] * 500)
    assert calibrate_threshold(GAME, records, 0.5) is None


def test_values_of_two_games_are_not_joined():
    records = made_records([([0.3, 0.1, -0.9], -1, CHECKMATE, True),
                            ([-0.9, 0.1, 0.3], -1, CHECKMATE, True)] * 500)
    assert calibrate_threshold(GAME, records, 0.5) is None


def test_watch_counts_each_side_of_each_game():
    watch = ResignationWatch(np.float32([-0.5, -0.5, -np.inf]))
    plies = [  # games, sides, values, resigns
        ([0, 1, 2], [0, 1, 0], [-0.6, -0.6, -1.0], [0, 0, 0]),
        ([2, 1, 0], [1, 0, 1], [-1.0, 0.6, -0.9], [0, 0, 0]),
        ([0, 1, 2], [0, 1, 0], [-0.5, -0.7, -1.0], [0, 1, 0]),
        ([2, 0], [1, 1], [-1.0, -0.9], [0, 1]),
    ]
    for games, sides, values, resigns in plies:
        told = watch.add_ply(np.array(games), np.uint8(sides), np.float32(values))
        np.testing.assert_array_equal(told, np.array(resigns, bool))


@pytest.fixture(scope="module")
def search():
    return MaterialSearch(GAME)


@pytest.fixture(scope="module")
def to_the_end(search):
    return play_games(GAME, [search], SETTINGS, num_games=NUM_GAMES, seed=8)[0]


def play_resigning(search, **changes):
    arguments = {"num_games": NUM_GAMES, "seed": 8, "resignation_threshold": THRESHOLD} | changes
    return play_games(GAME, [search] * 2, SETTINGS, **arguments)


def is_played_on(game):
    return game_unit(8, "played_on", game) < SETTINGS.resignation_played_on


def test_resigned_games_are_the_beginnings_of_games_played_to_the_end(search, to_the_end):
    records, statistics = play_resigning(search)
    num_resigned, num_played_on = 0, 0
    for game in range(NUM_GAMES):
        start, end = records.game_offsets[game : game + 2]
        whole_start, whole_end = to_the_end.game_offsets[game : game + 2]
        found = first_resignation(to_the_end, game, THRESHOLD)
        if found is None or is_played_on(game):
            assert end - start == whole_end - whole_start
            for name in ("outcomes_white", "terminations", "cut_values_white"):
                assert getattr(records, name)[game] == getattr(to_the_end, name)[game]
            num_played_on += found is not None
        else:
            ply, side = found
            assert end - start == ply + 1
            assert records.terminations[game] == ONGOING
            assert records.outcomes_white[game] == (-1 if side == 0 else 1)
            assert records.cut_values_white[game] == 0
            num_resigned += 1
        whole = slice(whole_start, whole_start + end - start)
        np.testing.assert_array_equal(records.actions[start:end], to_the_end.actions[whole])
    assert num_resigned > 15
    assert num_played_on > 2
    assert statistics.resigned == statistics.terminations[RESIGNED] == num_resigned
    assert is_resigned(records).sum() == num_resigned


def test_resigning_does_not_depend_on_groups(search):
    alone, _ = play_games(
        GAME, [search], replace(SETTINGS, concurrent_games=7), num_games=NUM_GAMES, seed=8,
        resignation_threshold=THRESHOLD,
    )
    records, _ = play_resigning(search)
    for name in ("actions", "game_offsets", "outcomes_white", "terminations"):
        np.testing.assert_array_equal(getattr(records, name), getattr(alone, name), name)


def test_without_a_threshold_nobody_resigns(to_the_end):
    assert not is_resigned(to_the_end).any()


@pytest.mark.parametrize("threshold", [0.0, 0.3, -1.01, float("nan")])
def test_a_threshold_out_of_range_is_refused(search, threshold):
    with pytest.raises(ConfigError, match="resignation_threshold"):
        play_resigning(search, resignation_threshold=threshold)


# What a cut game counts as, against its closed form.


QUEEN_AHEAD = "3qk3/8/8/8/8/8/8/QQ2K3 {} - - 3 40"  # white: two queens against one
PAWNS_BEHIND = "4k3/pppppp2/8/8/8/8/8/4K3 {} - - 3 40"  # black: six pawns
EVEN = "4k3/p7/8/8/8/8/P7/4K3 {} - - 3 40"
TANH_1 = 0.7615941559557649


def cut_value(fen, root_value_white, material_share, limit):
    states = GAME.parse_state(fen)[None]
    values = cut_values_white(
        GAME, states, np.float32([root_value_white]), material_share=material_share, limit=limit
    )
    assert values.dtype == np.float32
    return values[0]


@pytest.mark.parametrize("side", "wb")
@pytest.mark.parametrize(("fen", "root", "share", "limit", "expected"), [
    (PAWNS_BEHIND, 0.9, 1.0, 1.0, -TANH_1),
    (PAWNS_BEHIND, 0.9, 0.0, 1.0, 0.9),
    (PAWNS_BEHIND, 0.9, 0.0, 0.5, 0.45),
    (PAWNS_BEHIND, 0.4, 0.75, 0.8, 0.8 * (0.25 * 0.4 - 0.75 * TANH_1)),
    (QUEEN_AHEAD, -0.2, 0.5, 0.8, 0.8 * (0.5 * math.tanh(1.5) - 0.5 * 0.2)),
    (QUEEN_AHEAD, -1.0, 0.5, 0.0, 0.0),
    (EVEN, -0.6, 0.5, 0.8, -0.24),
])
def test_material_and_root_value_mix(side, fen, root, share, limit, expected):
    value = cut_value(fen.format(side), root, share, limit)
    assert value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_no_value_is_beyond_its_limit(share):
    overwhelming = "4k3/8/8/8/8/8/8/QQQQKQQQ b - - 3 40"
    assert 0.79 < cut_value(overwhelming, 1.0, share, 0.8) <= np.float32(0.8)


def test_games_are_valued_one_by_one():
    fens = [QUEEN_AHEAD.format("w"), PAWNS_BEHIND.format("b"), EVEN.format("b")]
    roots = np.float32([0.5, -0.25, 0.125])
    states = np.stack([GAME.parse_state(fen) for fen in fens])
    together = cut_values_white(GAME, states, roots, material_share=0.6, limit=0.9)
    alone = [cut_value(fen, root, 0.6, 0.9) for fen, root in zip(fens, roots, strict=True)]
    np.testing.assert_array_equal(together, alone)


def test_no_games_have_no_values():
    states = np.empty((0, GAME.spec.state_words), np.uint64)
    assert cut_values_white(GAME, states, np.float32([]), material_share=1, limit=1).shape == (0,)
