"""Games of one player on seeds: closed forms, independence, matches by seed, their files."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from solved_games import TAKE, WAIT, DoublingGame, SubtractionGame

from chess_snn.errors import ConfigError, CorruptDataError, IllegalMoveError
from chess_snn.evaluation.match_files import match_fault
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.openings import choose_openings
from chess_snn.evaluation.players import GreedyPlayer, RandomPlayer
from chess_snn.evaluation.scores import mean_interval, pair_counts
from chess_snn.evaluation.solo import match_seeds, play_seeds, point_figures
from chess_snn.games import ONGOING

GAME = DoublingGame()
ROUNDS = 6
SEEDS = match_seeds(5, 4000)


class FixedPlayer:
    """Always plays one action."""

    def __init__(self, action, name):
        self.name, self._action = name, action

    def choose(self, batch, keys, plies):
        return np.full(len(batch), self._action, np.int16)


@pytest.fixture(scope="module")
def greedy_games():
    return play_seeds(GAME, GreedyPlayer(GAME), SEEDS, max_plies=100)


@pytest.fixture(scope="module")
def match():
    return play_match(GAME, GreedyPlayer(GAME), RandomPlayer(), match_seeds(1, 400), seed=0)


def figures_of(games):
    return SimpleNamespace(
        **point_figures(GAME.spec, games.points, games.milestones, games.plies)
    )


def test_means_and_milestones_are_those_of_the_closed_form(greedy_games):
    greedy = figures_of(greedy_games)
    assert greedy.low < GAME.mean_of_greedy() < greedy.high
    assert greedy.low < greedy.mean < greedy.high
    assert (greedy.games, greedy.plies) == (len(SEEDS), ROUNDS)
    for k, share in enumerate(greedy.reached.values(), 1):
        assert share == pytest.approx(2.0**-k, abs=0.03)
    assert list(greedy.reached) == ["2", "4", "8"]
    at_random = figures_of(play_seeds(GAME, RandomPlayer(), SEEDS, max_plies=100))
    assert at_random.low < GAME.mean_of_greedy() / 2 < at_random.high


def test_the_interval_holds_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    bounds = [mean_interval(rng.exponential(size=80)) for _ in range(1000)]
    assert 0.92 < np.mean([low < 1.0 < high for low, high in bounds]) < 0.97
    assert mean_interval(np.ones(1)) == (-np.inf, np.inf)


def test_events_depend_on_the_seed_alone(greedy_games):
    few = play_seeds(GAME, GreedyPlayer(GAME), SEEDS[7:10], max_plies=100)
    np.testing.assert_array_equal(few.points, greedy_games.points[7:10])
    other = play_seeds(GAME, FixedPlayer(WAIT, "patient"), SEEDS, max_plies=100)
    np.testing.assert_array_equal(other.milestones, greedy_games.milestones)
    assert not other.points.any()


def test_a_players_draws_depend_on_the_seed_and_its_name_alone():
    one = play_seeds(GAME, RandomPlayer(), SEEDS[:50], max_plies=100)
    two = play_seeds(GAME, RandomPlayer(), SEEDS[10:40], max_plies=100)
    other = play_seeds(GAME, RandomPlayer("other"), SEEDS[:50], max_plies=100)
    np.testing.assert_array_equal(one.points[10:40], two.points)
    assert (one.points != other.points).any()


def test_a_cut_game_keeps_its_points(greedy_games):
    cut = play_seeds(GAME, GreedyPlayer(GAME), SEEDS[:20], max_plies=2)
    assert (cut.terminations == ONGOING).all()
    assert (cut.plies == 2).all()
    assert (cut.points < greedy_games.points[:20]).all()
    assert (greedy_games.terminations == 1).all()


def test_a_match_pairs_the_games_of_a_seed(match):
    a, b = match.points[match.a_is_white], match.points[~match.a_is_white]
    alone = play_seeds(GAME, RandomPlayer(), match_seeds(1, 400), max_plies=100)
    np.testing.assert_array_equal(b, alone.points)
    assert match.score == pytest.approx(np.mean(0.5 + 0.5 * np.sign(a - b)))
    counts = pair_counts(match)
    assert counts.tolist() == [(a < b).sum(), 0, (a == b).sum(), 0, (a > b).sum()]
    ahead = match.points_ahead()
    assert ahead["mean"] == pytest.approx(np.mean(a - b))
    # It is as much as the closed form says, and known better than from games on different seeds.
    assert ahead["low"] < GAME.mean_of_greedy() / 2 < ahead["high"]
    unpaired = 1.96 * np.sqrt((a.var() + b.var()) / len(a))
    assert ahead["high"] - ahead["low"] < 2 * unpaired


def test_parts_of_a_match_are_joined_to_the_whole(match):
    seeds = match_seeds(1, 400)
    parts = [
        play_match(GAME, GreedyPlayer(GAME), RandomPlayer(), part, seed=9)
        for part in (seeds[:150], seeds[150:])
    ]
    assert MatchResult.joined(parts).to_json() == match.to_json()


def test_a_stored_match_reads_as_it_was(match):
    body = json.loads(json.dumps(match.to_json()))
    again = MatchResult.from_json(GAME.spec, body)
    assert again.to_json() == match.to_json()
    assert match_fault(GAME, again, body) is None
    assert body["points"]["a"]["mean"] == pytest.approx(match.points[match.a_is_white].mean())


@pytest.mark.parametrize("change", [
    lambda result: {"points": result.points + 1},
    lambda result: {"milestones": result.milestones * 2},
    lambda result: {"opening_keys": result.opening_keys[::-1]},
    lambda result: {"actions": 1 - result.actions},
    lambda result: {"scores_a": 1 - result.scores_a},
])
def test_an_audit_finds_what_was_changed(match, change):
    changed = replace(match, **change(match))
    assert match_fault(GAME, changed, json.loads(json.dumps(changed.to_json()))) is not None


def test_a_stored_match_without_points_is_damaged(match):
    body = json.loads(json.dumps(match.to_json()))
    del body["per_game"]["points"]
    with pytest.raises(CorruptDataError):
        MatchResult.from_json(GAME.spec, body)


def test_what_cannot_be_played_alone():
    with pytest.raises(ConfigError):
        play_seeds(SubtractionGame(), RandomPlayer(), SEEDS, max_plies=10)
    with pytest.raises(ConfigError):
        play_seeds(GAME, RandomPlayer(), SEEDS[:0], max_plies=10)
    with pytest.raises(ConfigError):
        play_seeds(GAME, RandomPlayer(), SEEDS, max_plies=0)
    with pytest.raises(ConfigError):
        choose_openings(GAME, "book", 4, num_plies=0, seed=0)
    with pytest.raises(IllegalMoveError):
        play_seeds(GAME, FixedPlayer(5, "wrong"), SEEDS, max_plies=10)


def test_progress_counts_the_games_of_both():
    told = []
    play_match(
        GAME, FixedPlayer(TAKE, "a"), FixedPlayer(WAIT, "b"), match_seeds(0, 3), seed=0,
        on_progress=lambda done, total: told.append((done, total)),
    )
    assert told[-1] == (6, 6)
    assert (3, 6) in told
    assert told == sorted(told)
