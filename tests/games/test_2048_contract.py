"""2048 keeps the promises of every game."""

import pytest
from game_contract import GameContract

from chess_snn.games import get_game

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
