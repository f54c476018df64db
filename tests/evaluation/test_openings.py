import chess
import numpy as np
import pytest
from subtraction_game import SubtractionGame

from chess_snn.errors import ConfigError
from chess_snn.evaluation import book_openings, opening_keys, random_openings
from chess_snn.evaluation.openings import read_book


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
    reason = "found 20 distinct positions 1 plies .* --games asks for 21; begin more plies after"
    with pytest.raises(ConfigError, match=reason):
        random_openings(chess_game, 21, 1, seed=0, setting="--games")


@pytest.mark.parametrize(("num_openings", "num_plies"), [(0, 4), (4, -1)])
def test_arguments_out_of_range(chess_game, num_openings, num_plies):
    with pytest.raises(ConfigError, match="num_(openings|plies)"):
        random_openings(chess_game, num_openings, num_plies, seed=0)


def test_openings_of_the_book_are_its_lines(chess_game):
    openings = book_openings(chess_game, 1000, seed=3)
    keys = opening_keys(chess_game, openings)
    assert sorted(keys) == [line.key for line in read_book()]
    for state, key in list(zip(openings, keys, strict=True))[:200]:
        board = chess.Board()
        for move in read_book()[int(key.removeprefix("book:"))].moves:
            board.push_uci(move)
        assert chess_game.format_state(state) == board.fen()


def test_the_seed_decides_which_openings_of_the_book(chess_game):
    openings = book_openings(chess_game, 60, seed=9)
    np.testing.assert_array_equal(openings[:25], book_openings(chess_game, 25, seed=9))
    keys = set(opening_keys(chess_game, openings))
    assert len(keys) == 60
    assert keys != set(opening_keys(chess_game, book_openings(chess_game, 60, seed=10)))


def test_a_position_outside_the_book_is_called_by_its_fen(chess_game):
    states = random_openings(chess_game, 3, 20, seed=1)
    assert opening_keys(chess_game, states) == tuple(map(chess_game.format_state, states))


@pytest.mark.parametrize(("num_openings", "reason"), [
    (0, "--games must be >= 1"),
    (1001, "--games asks for 1001 openings, and the book has 1000; ask for fewer, or take random"),
])
def test_more_than_the_book_has_or_none(chess_game, num_openings, reason):
    with pytest.raises(ConfigError, match=reason):
        book_openings(chess_game, num_openings, seed=0, setting="--games")


def test_no_book_for_another_game():
    with pytest.raises(ConfigError, match="subtraction"):
        book_openings(SubtractionGame(), 1, seed=0)
