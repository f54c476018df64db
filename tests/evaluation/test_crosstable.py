import numpy as np
import pytest

from chess_snn.errors import RatingError
from chess_snn.evaluation import (
    Crosstable,
    GreedyPlayer,
    RandomPlayer,
    RatedGame,
    match_games,
    play_match,
    random_openings,
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
    for row, score in zip(games, result.scores_a.tolist(), strict=True):
        for_a = row.outcome_white if row.white == result.player_a else -row.outcome_white
        assert for_a == 2 * score - 1
    assert {row.opening for row in games} == set(result.opening_keys)


@pytest.mark.parametrize(
    ("games", "message"),
    [([], "no games"),
     ([game("a", "a", 1, "x")], "'a' plays itself in game 0"),
     ([game("a", "b", 1, "x"), game("a", "b", 2, "x")], "game 1 has outcome 2")],
)
def test_refuses_what_it_cannot_count(games, message):
    with pytest.raises(RatingError, match=message):
        Crosstable.from_games(games)
