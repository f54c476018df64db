import chess
import numpy as np
import pytest

from chess_snn.errors import ConfigError
from chess_snn.evaluation import random_openings


def test_distinct_legal_and_of_the_length_asked_for(chess_game):
    openings = random_openings(chess_game, 200, 6, seed=1)
    assert openings.shape == (200, chess_game.spec.state_words)
    assert openings.dtype == np.uint64
    boards = [chess.Board(chess_game.format_state(state)) for state in openings]
    assert len({board.fen() for board in boards}) == 200
    for board in boards:
        assert board.is_valid()
        assert board.ply() == 6
        assert not board.is_game_over()


def test_same_seed_same_openings_and_a_longer_list_begins_with_the_shorter(chess_game):
    openings = random_openings(chess_game, 60, 4, seed=9)
    np.testing.assert_array_equal(openings, random_openings(chess_game, 60, 4, seed=9))
    np.testing.assert_array_equal(openings[:25], random_openings(chess_game, 25, 4, seed=9))
    assert (openings != random_openings(chess_game, 60, 4, seed=10)).any()


def test_every_first_move_is_found(chess_game):
    openings = random_openings(chess_game, 20, 1, seed=0)
    fens = {chess_game.format_state(state) for state in openings}
    board = chess.Board()
    expected = set()
    for move in list(board.legal_moves):
        board.push(move)
        expected.add(board.fen())
        board.pop()
    assert fens == expected


def test_asking_for_more_than_there_are(chess_game):
    with pytest.raises(ConfigError, match="found 20 distinct positions 1 plies"):
        random_openings(chess_game, 21, 1, seed=0)


@pytest.mark.parametrize(("num_openings", "num_plies"), [(0, 4), (4, -1)])
def test_arguments_out_of_range(chess_game, num_openings, num_plies):
    with pytest.raises(ConfigError, match=r"evaluation\.\w+ must be"):
        random_openings(chess_game, num_openings, num_plies, seed=0)
