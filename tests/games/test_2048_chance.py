"""How tiles come: the drawn ones against their exact probabilities, with fixed seeds."""

import numpy as np
import pytest

from chess_snn.games import get_game
from chess_snn.games.twenty48.layout import BOARD, NATURE
from chess_snn.rng import random_words

GAME = get_game("2048")
NUM_DRAWS = 200_000
UNLIKELY = 3.1
"""Of the right distribution, one choice of seeds in a thousand would exceed it."""


def normal_deviate(counts, expected, num_fitted=0):
    """What a chi-squared test finds, as a standard normal number (Wilson & Hilferty 1931)."""
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = counts.size - 1 - num_fitted
    variance = 2 / (9 * freedom)
    return ((statistic / freedom) ** (1 / 3) - 1 + variance) / variance**0.5


def test_the_chi_squared_test_knows_its_quantiles():
    """Tabulated: 0.1 % of the distribution with 9 degrees of freedom lie above 27.88."""
    counts = np.full(10, 100.0)
    counts[:2] += np.array([1, -1]) * (27.88 * 100 / 2) ** 0.5
    assert normal_deviate(counts, np.full(10, 100.0)) == pytest.approx(3.09, abs=0.03)


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
    assert normal_deviate(counts[listed], expected) < UNLIKELY


def test_the_tile_does_not_depend_on_the_cell():
    events, _, _ = draws("2 4 8 16/4 8 16 2/. . . ./64 2 4 8", "up")
    table = np.bincount(events, minlength=32).reshape(16, 2)
    table = table[table.any(axis=1)]
    rows, columns = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
    expected = rows * columns / NUM_DRAWS
    assert normal_deviate(table, expected, num_fitted=len(rows)) < UNLIKELY


def test_initial_states_have_two_tiles_of_the_same_distribution():
    states = GAME.initial_states(np.arange(NUM_DRAWS, dtype=np.uint64))
    assert not states[:, NATURE].any()
    exponents = states[:, BOARD, None] >> np.arange(0, 64, 4, dtype=np.uint64) & np.uint64(15)
    assert (np.count_nonzero(exponents, axis=1) == 2).all()
    cells = np.count_nonzero(exponents, axis=0)
    assert normal_deviate(cells, cells.mean()) < UNLIKELY
    num_fours = np.bincount(np.count_nonzero(exponents == 2, axis=1), minlength=3)
    expected = NUM_DRAWS * np.array([0.81, 0.18, 0.01])
    assert normal_deviate(num_fours, expected) < UNLIKELY


def test_an_initial_state_depends_on_its_own_seed_alone():
    seeds = np.random.default_rng(1).integers(0, 2**64, 50, dtype=np.uint64)
    states = GAME.initial_states(seeds)
    np.testing.assert_array_equal(GAME.initial_states(seeds[::-1]), states[::-1])
    np.testing.assert_array_equal(GAME.initial_states(seeds[7:8]), states[7:8])
