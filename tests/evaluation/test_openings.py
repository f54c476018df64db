
import chess
import chess.engine
import numpy as np
import pytest

from chess_snn.errors import ConfigError
from chess_snn.evaluation.openings import (
    BookLine,
    book_openings,
    opening_keys,
    random_openings,
    read_book,
)
from chess_snn.rng import generator


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


@pytest.mark.parametrize(("num_openings", "num_plies"), [(0, 4), (4, -1)])
def test_arguments_out_of_range(chess_game, num_openings, num_plies):
    with pytest.raises(ConfigError, match=r"num_(openings|plies)"):
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


# The shipped book: legal, short, distinct, nothing lost, and even in Stockfish's eyes.


LENGTHS, LINES_EACH = range(4, 9), 200
MOST_CENTIPAWNS, NODES = 50, 20_000
"""Largest evaluation, either side's, by Stockfish 15.1 that looks at so many nodes."""
FULL_ARMY = {chess.KNIGHT: 2, chess.BISHOP: 2, chess.ROOK: 2, chess.QUEEN: 1, chess.KING: 1}


def has_full_army(board: chess.Board) -> bool:
    """Whether both sides have all their pieces, and no more than one pawn less."""
    return all(
        len(board.pieces(chess.PAWN, color)) >= 7
        and all(len(board.pieces(kind, color)) == num for kind, num in FULL_ARMY.items())
        for color in chess.COLORS
    )


def board_of(line: BookLine) -> chess.Board:
    board = chess.Board()
    for move in line.moves:
        board.push_uci(move)  # refuses an illegal one
    return board


@pytest.fixture(scope="module")
def boards():
    return [board_of(line) for line in read_book()]


def test_a_thousand_lines_as_many_of_each_length(boards):
    assert [line.number for line in read_book()] == list(range(1000))
    lengths = [board.ply() for board in boards]
    assert {length: lengths.count(length) for length in set(lengths)} == dict.fromkeys(
        LENGTHS, LINES_EACH
    )


def test_no_two_end_in_one_position_even_with_colours_swapped(boards):
    assert len({board.epd() for board in boards}) == len(boards)
    mirrored = {board.mirror().epd() for board in boards}
    assert not mirrored & {board.epd() for board in boards}


def test_nobody_has_lost_anything_or_stands_in_check(boards):
    for board in boards:
        assert has_full_army(board)
        assert not board.is_check()
        assert not board.is_game_over()


def test_no_position_comes_twice_on_the_way(boards):
    for board in boards:
        replayed, seen = chess.Board(), set()
        for move in board.move_stack:
            seen.add(replayed.epd())
            replayed.push(move)
            assert replayed.epd() not in seen


def test_evaluations_are_small_and_favour_white_as_the_first_move_does():
    centipawns = [line.centipawns_white for line in read_book()]
    assert max(map(abs, centipawns)) <= MOST_CENTIPAWNS
    assert -25 < sum(centipawns) / len(centipawns) < 25


@pytest.mark.oracle
def test_a_sample_is_even_in_the_eyes_of_stockfish(stockfish):
    numbers = generator(0, "sample").choice(1000, size=8, replace=False)
    limit = chess.engine.Limit(nodes=NODES)
    with chess.engine.SimpleEngine.popen_uci(str(stockfish)) as engine:
        engine.configure({"Threads": 1, "Hash": 16})
        for line in (read_book()[number] for number in numbers):
            info = engine.analyse(board_of(line), limit, game=object())
            centipawns = info["score"].white().score(mate_score=10_000)
            if engine.id["name"] == "Stockfish 15.1":
                assert centipawns == line.centipawns_white
            assert abs(centipawns) <= 2 * MOST_CENTIPAWNS
