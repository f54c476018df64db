"""How tiles come: the drawn ones against their exact probabilities, with fixed seeds."""

import numpy as np
import pytest
from scipy import stats

from chess_snn.games import get_game
from chess_snn.games.twenty48.layout import BOARD, NATURE
from chess_snn.rng import random_words

GAME = get_game("2048")
NUM_DRAWS = 200_000
ALPHA = 0.001
"""Of a true distribution, one fixed seed in a thousand would fail here; these do not."""


def draws(text, action):
    """Event of each draw, and the exact probability of each event, at a position."""
    one = GAME.allocate(1)
    GAME.reset(one, np.array([0]), GAME.parse_state(text)[None])
    batch = one.take(np.zeros(NUM_DRAWS, np.int64))
    words = random_words(np.arange(NUM_DRAWS, dtype=np.uint64), np.zeros(NUM_DRAWS, np.uint64))
    actions = np.full(NUM_DRAWS, GAME.parse_action(one.state[0], action), np.int16)
    GAME.step(batch, actions, words)
    GAME.step(one, actions[:1])
    new = batch.state[:, BOARD] ^ one.state[0, BOARD]
    bits = np.log2(new.astype(np.float64)).astype(int)
    assert (new == 1 << bits.astype(np.uint64)).all(), "one new tile, a 2 or a 4"
    events = bits // 4 * 2 + bits % 4
    listed = one.legal_actions[0, : one.num_legal[0]]
    probabilities = GAME.event_probabilities(one.state)[0, : len(listed)]
    return events, listed, probabilities.astype(np.float64)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("2 . . 4/. . . ./. . . ./. . . .", "left"),
        ("2 4 8 16/4 8 16 2/. . . ./64 2 4 8", "up"),
        ("2 4 8 16/4 8 16 2/2 32 8 4/64 2 4 4", "right"),
    ],
)
def test_cells_and_tiles_come_with_their_exact_probabilities(text, action):
    events, listed, probabilities = draws(text, action)
    counts = np.bincount(events, minlength=32)
    assert counts.sum() == counts[listed].sum(), "only empty cells"
    expected = probabilities / probabilities.sum() * NUM_DRAWS
    assert stats.chisquare(counts[listed], expected).pvalue > ALPHA


def test_the_tile_does_not_depend_on_the_cell():
    events, _, _ = draws("2 4 8 16/4 8 16 2/. . . ./64 2 4 8", "up")
    table = np.bincount(events, minlength=32).reshape(16, 2)
    assert stats.chi2_contingency(table[table.any(axis=1)]).pvalue > ALPHA


def test_initial_states_have_two_tiles_of_the_same_distribution():
    states = GAME.initial_states(np.arange(NUM_DRAWS, dtype=np.uint64))
    assert not states[:, NATURE].any()
    exponents = states[:, BOARD, None] >> np.arange(0, 64, 4, dtype=np.uint64) & np.uint64(15)
    assert (np.count_nonzero(exponents, axis=1) == 2).all()
    cells = np.count_nonzero(exponents, axis=0)
    assert stats.chisquare(cells).pvalue > ALPHA
    num_fours = np.bincount(np.count_nonzero(exponents == 2, axis=1), minlength=3)
    assert stats.chisquare(num_fours, NUM_DRAWS * np.array([0.81, 0.18, 0.01])).pvalue > ALPHA


def test_an_initial_state_depends_on_its_own_seed_alone():
    seeds = np.random.default_rng(1).integers(0, 2**64, 50, dtype=np.uint64)
    states = GAME.initial_states(seeds)
    np.testing.assert_array_equal(GAME.initial_states(seeds[::-1]), states[::-1])
    np.testing.assert_array_equal(GAME.initial_states(seeds[7:8]), states[7:8])
