"""Games by name, and the counting of how they ended."""

import numpy as np
import pytest

from chess_snn.errors import ConfigError
from chess_snn.games import GAME_NAMES, get_game, termination_counts


@pytest.mark.parametrize("name", GAME_NAMES)
def test_a_known_name_gives_that_game(name):
    assert get_game(name).spec.name == name
    assert get_game(name) is get_game(name)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"unknown game 'go'; known: chess"):
        get_game("go")


def test_termination_counts_by_name():
    codes = np.array([1, 0, 1, 5], dtype=np.uint8)
    counts = termination_counts(get_game("chess").spec, codes)
    assert counts == {"ongoing": 1, "checkmate": 2, "insufficient_material": 1}
