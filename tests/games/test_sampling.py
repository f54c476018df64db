"""Uniform random play."""

import numpy as np
import pytest

from chess_snn.errors import ConfigError
from chess_snn.games import ONGOING, get_game
from chess_snn.games.sampling import NO_ACTION, random_legal_actions, random_starts

GAME = get_game("chess")


def keys(count, seed=0):
    return np.arange(seed, seed + count, dtype=np.uint64)


def plies(count, ply):
    return np.full(count, ply, dtype=np.int32)


def test_every_legal_action_is_equally_likely():
    num_games = 20_000
    batch = GAME.allocate(1).take(np.zeros(num_games, dtype=np.int64))
    actions = random_legal_actions(batch, keys(num_games), plies(num_games, 0))
    legal = batch.legal_actions[0, :20]
    counts = np.array([np.count_nonzero(actions == action) for action in legal])
    assert counts.sum() == num_games
    expected = num_games / 20
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    assert chi_squared < 43.8  # 99.9 % quantile at 19 degrees of freedom


def test_draw_depends_on_key_and_ply_alone():
    batch = GAME.allocate(50)
    first = random_legal_actions(batch, keys(50), plies(50, 4))
    order = np.random.default_rng(1).permutation(50)
    again = random_legal_actions(batch.take(order), keys(50)[order], plies(50, 4))
    np.testing.assert_array_equal(again, first[order])
    assert (random_legal_actions(batch, keys(50), plies(50, 5)) != first).any()


def test_ended_games_get_no_action():
    batch = GAME.allocate(2)
    mated = GAME.parse_state("rnb1kbnr/pppp1ppp/8/4p3/5PPq/8/PPPPP2P/RNBQKBNR w KQkq - 1 3")
    GAME.reset(batch, np.array([1]), mated[None])
    actions = random_legal_actions(batch, keys(2), plies(2, 0))
    assert actions[0] >= 0
    assert actions[1] == NO_ACTION


def test_starts_are_so_many_plies_in():
    wanted = np.arange(30, dtype=np.int32)
    starts = random_starts(GAME, keys(30), wanted)
    for state, num_plies in zip(starts, wanted, strict=True):
        assert 2 * (_fullmove(state) - 1) + GAME.side_to_move(state[None])[0] == num_plies


def _fullmove(state):
    return int(GAME.format_state(state).split()[5])


def test_start_of_a_row_does_not_depend_on_the_others():
    wanted = np.tile(np.array([0, 3, 8, 40], dtype=np.int32), 25)
    together = random_starts(GAME, keys(100), wanted)
    order = np.random.default_rng(2).permutation(100)[:30]
    np.testing.assert_array_equal(
        random_starts(GAME, keys(100)[order], wanted[order]), together[order]
    )
    assert len(np.unique(together[wanted == 8], axis=0)) == 25


def test_no_start_has_ended():
    """At 250 plies a good part of random games is over, so many rows are played again."""
    wanted = np.full(200, 250, dtype=np.int32)
    starts = random_starts(GAME, keys(200), wanted)
    batch = GAME.allocate(200)
    GAME.reset(batch, np.arange(200), starts)
    assert (batch.termination == ONGOING).all()


def test_keys_are_left_as_they_were():
    given = keys(20)
    random_starts(GAME, given, np.full(20, 250, dtype=np.int32))
    np.testing.assert_array_equal(given, keys(20))


def test_no_rows_at_all():
    assert random_starts(GAME, keys(0), plies(0, 5)).shape == (0, GAME.spec.state_words)


def test_too_many_plies_is_an_error():
    with pytest.raises(ConfigError, match="5000 plies; ask for fewer"):
        random_starts(GAME, keys(1), plies(1, 5000))
