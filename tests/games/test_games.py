"""Each game keeps the promises of every game; games are found by name."""

import numpy as np
import pytest
from game_contract import GameContract

from chess_snn.errors import ConfigError
from chess_snn.games import GAME_NAMES, get_game, termination_counts


class TestChessContract(GameContract):
    @pytest.fixture
    def game(self):
        return get_game("chess")

    @pytest.fixture
    def bad_states(self):
        return ("", "   ", "startpos", "8/8/8/8/8/8/8/8 w - - 0 1", "a\nb", "\x00", "♔" * 64)

    @pytest.fixture
    def bad_actions(self):
        malformed = ("", "O-O", "e4", "z9z9", "e2e4 e7e5", "♙e4")
        return (*malformed, "e2e5", "e7e5", "0000", "e2e4q", "e1h1")


# 2048 keeps the promises of every game.


EMPTY_ROWS = "/. . . ./. . . ./. . . ."


class TestTwenty48Contract(GameContract):
    has_practice_states = False

    @pytest.fixture
    def game(self):
        return get_game("2048")

    @pytest.fixture
    def bad_states(self):
        malformed = ("", "   ", "startpos", "2 2 . ./. . . .", "a\nb", "\x00", "2 . . . ." * 4)
        out_of_range = (
            f"2 2 . {tile}{EMPTY_ROWS}" for tile in ("0", "1", "3", "-2", "65536", "+", "2.0")
        )
        return (
            *malformed, *out_of_range,
            f". . . .{EMPTY_ROWS}",
            f". . . .{EMPTY_ROWS} +",
            f"2 . . .{EMPTY_ROWS}",
            f"8 . . 8{EMPTY_ROWS}",
            f"2 2 . .{EMPTY_ROWS} + +",
            "/".join(["2 4 2 4", "4 2 4 2"] * 2) + " +",
        )

    @pytest.fixture
    def bad_actions(self):
        return ("", "x", "le", "e2e4", "2@b3", "0", "left right", "\x00")


# Games by name, and the counting of how they ended.


@pytest.mark.parametrize("name", GAME_NAMES)
def test_a_known_name_gives_that_game(name):
    assert get_game(name).spec.name == name
    assert get_game(name) is get_game(name)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ConfigError, match="'go'.* chess"):
        get_game("go")


def test_termination_counts_by_name():
    codes = np.array([1, 0, 1, 5], dtype=np.uint8)
    counts = termination_counts(get_game("chess").spec, codes)
    assert counts == {"ongoing": 1, "checkmate": 2, "insufficient_material": 1}
