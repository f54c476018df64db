"""Chess keeps the promises of every game."""

import pytest
from game_contract import GameContract

from chess_snn.games import get_game


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
