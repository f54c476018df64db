import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_games import chances

from chess_snn.errors import RatingError
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.openings import random_openings
from chess_snn.evaluation.players import GreedyPlayer, RandomPlayer
from chess_snn.evaluation.ratings.crosstable import Crosstable, RatedGame, match_games
from chess_snn.evaluation.ratings.davidson import (
    COLOUR,
    LOG_DRAW,
    gathered_matrix,
    gathered_vector,
    information,
    log_likelihood,
    log_probabilities,
    score,
)
from chess_snn.evaluation.scores import ELO_PER_NAT

PAIRINGS = np.array([[0, 1], [0, 3], [1, 2], [2, 3]])
NUM_PLAYERS = 4


def drawn_problem(seed):
    stream = np.random.default_rng(seed)
    theta = stream.normal(size=NUM_PLAYERS + 2)
    counts = stream.integers(0, 6, size=(len(PAIRINGS), 2, 3)).astype(np.float64)
    return theta, counts


def gradient_of(theta, counts):
    return gathered_vector(score(theta, counts, PAIRINGS), PAIRINGS, NUM_PLAYERS)


def information_of(theta, counts):
    return gathered_matrix(information(theta, counts, PAIRINGS), PAIRINGS, NUM_PLAYERS)


@given(st.floats(-900, 900), st.floats(-900, 900), st.floats(-100, 100), st.floats(0.0, 0.95))
def test_chances_are_those_of_the_formula(elo_white, elo_black, colour, draw_rate):
    advantage = (elo_white - elo_black + colour) / ELO_PER_NAT
    with np.errstate(divide="ignore"):
        log_draw = np.log(np.float64(2 * draw_rate / (1 - draw_rate)))
    told = np.exp(log_probabilities(np.float64(advantage), log_draw))
    assert told == pytest.approx(chances(elo_white, elo_black, colour, draw_rate), rel=1e-9)


def test_chances_at_any_distance_are_finite_and_sum_to_one():
    advantage = np.array([-1e4, -800.0, 0.0, 800.0, 1e4])
    for log_draw in (-np.inf, 0.0, 500.0):
        told = np.exp(log_probabilities(advantage, np.float64(log_draw)))
        assert told.sum(axis=-1) == pytest.approx(1.0)


def test_likelihood_is_the_sum_over_games():
    theta, counts = drawn_problem(1)
    total = 0.0
    for (first, second), by_colour in zip(PAIRINGS, counts, strict=True):
        seats = ((first, second), (second, first))
        for (white, black), outcomes in zip(seats, by_colour, strict=True):
            advantage = theta[white] + theta[COLOUR] - theta[black]
            total += outcomes @ log_probabilities(advantage, theta[LOG_DRAW])
    assert log_likelihood(theta, counts, PAIRINGS) == pytest.approx(total)


@pytest.mark.parametrize("seed", range(3))
def test_gradient_and_information_are_those_of_finite_differences(seed):
    theta, counts = drawn_problem(seed)
    width = 1e-5
    for column in range(len(theta)):
        above, below = theta.copy(), theta.copy()
        above[column] += width
        below[column] -= width
        slope = log_likelihood(above, counts, PAIRINGS) - log_likelihood(below, counts, PAIRINGS)
        assert gradient_of(theta, counts)[column] == pytest.approx(slope / (2 * width), abs=1e-6)
        bend = gradient_of(above, counts) - gradient_of(below, counts)
        assert -information_of(theta, counts)[:, column] == pytest.approx(
            bend / (2 * width), abs=1e-6
        )


def game(white, black, outcome_white, opening):
    return RatedGame(white, black, outcome_white, opening)


def test_counts_by_colour_and_outcome():
    table = Crosstable.from_games([
        game("b", "a", 1, "x"), game("a", "b", 0, "x"), game("a", "b", -1, "y"),
        game("b", "a", 1, "y"), game("a", "c", 1, "x"),
    ])
    assert table.players == ("a", "b", "c")
    assert table.pairings.tolist() == [[0, 1], [0, 2]]
    # Pairing a-b, a white: drawn, lost; b white: won twice. Pairing a-c, a white: won.
    assert table.totals().tolist() == [[[0, 1, 1], [2, 0, 0]], [[1, 0, 0], [0, 0, 0]]]
    assert table.openings_of_pairings().tolist() == [2, 1]
    assert table.num_games == 5


def test_games_from_one_opening_are_one_unit_and_equal_units_are_counted():
    rows = [("x", 1, -1), ("y", 1, -1), ("z", 0, 0)]
    table = Crosstable.from_games(
        [game("a", "b", first, opening) for opening, first, _ in rows]
        + [game("b", "a", second, opening) for opening, _, second in rows]
        + [game("a", "b", 0, "z")]
    )
    units = {tuple(result.ravel().tolist()): int(count)
             for result, count in zip(table.results, table.num_openings, strict=True)}
    assert units == {(1, 0, 0, 0, 0, 1): 2, (0, 2, 0, 0, 1, 0): 1}


def test_games_and_scores_of_each_player():
    table = Crosstable.from_games(
        [game("a", "b", 1, "x"), game("b", "a", 0, "x"), game("c", "b", -1, "x")]
    )
    num_games, scores = table.games_and_scores()
    assert num_games.tolist() == [2, 3, 1]
    assert scores.tolist() == [0.75, 0.5, 0.0]


def test_neither_order_nor_names_of_openings_change_the_table():
    stream = np.random.default_rng(5)
    rows = [game(*stream.permutation(["a", "b", "c"])[:2].tolist(), int(stream.integers(-1, 2)),
                 str(stream.integers(20))) for _ in range(200)]
    renamed = {str(number): f"opening {name}" for number, name in
               enumerate(stream.permutation(20))}
    shuffled = [game(row.white, row.black, row.outcome_white, renamed[row.opening])
                for row in (rows[index] for index in stream.permutation(200))]
    one, other = Crosstable.from_games(rows), Crosstable.from_games(shuffled)
    assert one.players == other.players
    for name in ("pairings", "pairing_of", "results", "num_openings"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_match_is_counted_as_it_was_played(chess_game):
    openings = random_openings(chess_game, 6, 4, seed=3)
    result = play_match(
        chess_game, GreedyPlayer(chess_game), RandomPlayer(), openings, seed=1, max_plies=80
    )
    games = match_games(result)
    table = Crosstable.from_games(games)
    num_games, scores = table.games_and_scores()
    assert num_games.tolist() == [12, 12]
    assert scores[table.players.index(result.player_a)] == pytest.approx(result.score)
    assert table.openings_of_pairings().tolist() == [6]
    whites = [row.white for row in games]
    assert whites == [result.player_a, result.player_b] * 6
    for row, score_a in zip(games, result.scores_a.tolist(), strict=True):
        for_a = row.outcome_white if row.white == result.player_a else -row.outcome_white
        assert for_a == 2 * score_a - 1
    assert {row.opening for row in games} == set(result.opening_keys)


@pytest.mark.parametrize(
    ("games", "message"),
    [([], "games"),
     ([game("a", "a", 1, "x")], "'a' .*game 0"),
     ([game("a", "b", 1, "x"), game("a", "b", 2, "x")], "game 1 .*2")],
)
def test_refuses_what_it_cannot_count(games, message):
    with pytest.raises(RatingError, match=message):
        Crosstable.from_games(games)
