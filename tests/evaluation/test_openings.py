from importlib import resources

import chess
import numpy as np
import pytest
from book_maker import (
    BookSettings,
    book_head,
    evaluate,
    has_full_army,
    make_book,
    open_engine,
    random_line,
)

from chess_snn.errors import ConfigError, CorruptDataError, UsageError
from chess_snn.evaluation import openings
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


MADE_BY = BookSettings()


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
        range(MADE_BY.min_plies, MADE_BY.max_plies + 1), MADE_BY.lines_each
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
    assert max(map(abs, centipawns)) <= MADE_BY.max_centipawns
    assert -25 < sum(centipawns) / len(centipawns) < 25


@pytest.mark.slow
def test_every_line_is_the_candidate_that_its_seed_draws():
    """The head says how the book was made, and its lines are among those candidates, in order."""
    text = resources.files("chess_snn.evaluation").joinpath(openings.BOOK_FILE).read_text()
    head = [row for row in text.splitlines() if row.startswith("#")]
    num_candidates = int(head[-1].split()[1])
    made_now = book_head(MADE_BY, "Stockfish 15.1", num_candidates).splitlines()
    assert [row for row in head if "# Made" not in row] == [
        row for row in made_now if "# Made" not in row
    ]
    wanted = {line.moves: line.number for line in read_book()}
    found = []
    for number in range(num_candidates):
        board = random_line(MADE_BY, number)
        if board is not None:
            moves = tuple(move.uci() for move in board.move_stack)
            if moves in wanted:
                found.append(wanted.pop(moves))
    assert found == list(range(1000))


@pytest.mark.oracle
class TestWithStockfish:
    def test_a_sample_is_even(self, stockfish):
        numbers = generator(0, "sample").choice(1000, size=8, replace=False)
        lines = [read_book()[number] for number in numbers]
        with open_engine(stockfish) as engine:
            is_the_same = engine.id["name"] == "Stockfish 15.1"
            found = [evaluate(engine, MADE_BY, board_of(line)) for line in lines]
        for line, centipawns in zip(lines, found, strict=True):
            if is_the_same:
                assert centipawns == line.centipawns_white
            else:
                assert abs(centipawns) <= 2 * MADE_BY.max_centipawns

    def test_a_small_book_is_the_same_each_time(self, stockfish):
        settings = BookSettings(seed=7, lines_each=2, min_plies=3, max_plies=4, nodes=300)
        books = []
        for _ in range(2):
            with open_engine(stockfish) as engine:
                books.append(list(make_book(settings, engine)))
        assert books[0] == books[1]
        assert [len(line.moves) for _, line in books[0]].count(3) == 2
        assert [line.number for _, line in books[0]] == [0, 1, 2, 3]
        for candidate, line in books[0]:
            assert random_line(settings, candidate).epd() == board_of(line).epd()
            assert abs(line.centipawns_white) <= 50

    @pytest.mark.slow
    def test_what_there_is_not_is_not_looked_for_for_ever(self, stockfish):
        settings = BookSettings(lines_each=2, min_plies=1, max_plies=1, nodes=10, max_centipawns=0)
        with open_engine(stockfish) as engine, pytest.raises(
            UsageError, match=r"\d of 2 openings"
        ):
            list(make_book(settings, engine))


@pytest.mark.parametrize("fen", [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPP2PP/RNBQKBNR w KQkq - 0 4",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKB1R w KQkq - 0 4",
])
def test_an_army_that_lost_something(fen):
    assert not has_full_army(chess.Board(fen))
    assert has_full_army(chess.Board("rnbqkbnr/ppp1pppp/8/8/8/8/PPPP1PPP/RNBQKBNR w KQkq - 0 4"))


@pytest.mark.parametrize("row", ["0001 +3 e2e4", "0000 +3", "0000 e2e4", "x"])
def test_an_edited_book_is_refused(row, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "openings.txt").write_text(f"# head\n{row}\n")
    monkeypatch.setattr(openings.resources, "files", lambda package: tmp_path)
    with pytest.raises(CorruptDataError, match="opening 0"):
        read_book.__wrapped__()
