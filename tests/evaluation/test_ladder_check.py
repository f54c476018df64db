"""The check of a ladder: it sees which games were not played again move by move."""

from dataclasses import replace

import numpy as np
import pytest

from chess_snn.evaluation.ladder.check import num_same_games
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.openings import book_openings
from chess_snn.evaluation.players import GreedyPlayer, RandomPlayer


@pytest.fixture(scope="module")
def play(chess_game):
    """The first games of one match."""

    def begin(num_openings, opponent="greedy"):
        openings = book_openings(chess_game, 5, seed=7)[:num_openings]
        players = RandomPlayer(), GreedyPlayer(chess_game, opponent)
        return play_match(chess_game, *players, openings, seed=7, max_plies=30)

    return begin


def test_the_first_games_of_a_match_are_played_again_alike(play):
    whole = play(5)
    assert num_same_games(whole, play(2)) == 4
    assert num_same_games(whole, whole) == 10


def test_a_player_with_other_random_numbers_is_seen(play):
    assert num_same_games(play(5), play(5, opponent="another")) < 10


def test_each_changed_game_is_counted(play):
    match = play(3)
    ends = np.cumsum(match.plies)
    for changed in ([0], [2, 5]):
        actions = match.actions.copy()
        actions[ends[changed] - 1] += 1
        assert num_same_games(match, replace(match, actions=actions)) == 6 - len(changed)
    shorter = match.plies.copy()
    shorter[-1] -= 1
    assert num_same_games(match, replace(match, plies=shorter, actions=match.actions[:-1])) == 5
    keys = ("book:9999", *match.opening_keys[1:])
    assert num_same_games(match, replace(match, opening_keys=keys)) == 4
