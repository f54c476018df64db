from collections import Counter

import chess
import numpy as np
import pytest
from solved_games import SubtractionGame
from uniform_evaluator import UniformEvaluator

from chess_snn.errors import ConfigError
from chess_snn.evaluation.won_positions import conversion_rate, won_positions
from chess_snn.search import PolicySearch, SearchSettings, make_search

NUM_POSITIONS, MAX_PLIES = 12, 40
MATERIAL = {chess.QUEEN: 9, chess.ROOK: 5}


@pytest.fixture(scope="module")
def search(chess_game):
    return make_search(
        chess_game, UniformEvaluator(), SearchSettings(), simulations=100, num_games=NUM_POSITIONS
    )


def strong_side(board: chess.Board) -> chess.Color:
    (color,) = {piece.color for piece in board.piece_map().values()
                if piece.piece_type in MATERIAL}
    return color


def play_alone(game, search, state) -> tuple[str, int]:
    """How python-chess says that one position ends, and after how many plies."""
    batch = game.allocate(1)
    game.reset(batch, np.zeros(1, np.int64), state[None])
    board = chess.Board(game.format_state(state))
    strong = strong_side(board)
    for ply in range(MAX_PLIES):
        result = search.run(
            batch, np.zeros(1, np.uint64), np.full(1, ply, np.int32), np.zeros(1, np.float32)
        )
        board.push_uci(game.format_action(batch.state[0], result.actions[0]))
        game.step(batch, result.actions)
        if board.is_checkmate():
            return ("lost" if board.turn == strong else "won"), ply + 1
        if board.is_stalemate() or board.is_insufficient_material() or board.is_repetition():
            return "drawn", ply + 1
    return "truncated", MAX_PLIES


def test_counts_are_those_of_games_played_one_by_one_in_python_chess(chess_game, search):
    suite = won_positions(chess_game, NUM_POSITIONS)
    ends = [play_alone(chess_game, search, state) for state in suite]
    counts = Counter(how for how, _ in ends)
    assert 0 < counts["won"] < NUM_POSITIONS, "the test needs both"

    calls = []
    found = conversion_rate(
        chess_game, search, NUM_POSITIONS, MAX_PLIES, on_progress=lambda *call: calls.append(call)
    )
    assert {name: getattr(found, name) for name in ("won", "drawn", "lost", "truncated")} == {
        name: counts[name] for name in ("won", "drawn", "lost", "truncated")
    }
    assert found.rate == counts["won"] / NUM_POSITIONS
    wins = [plies for how, plies in ends if how == "won"]
    assert found.mean_plies_to_win == pytest.approx(np.mean(wins))
    assert calls == sorted(calls)
    assert calls[-1] == (NUM_POSITIONS - counts["truncated"], NUM_POSITIONS)


def test_one_ply_converts_nothing(chess_game):
    found = conversion_rate(chess_game, PolicySearch(chess_game, UniformEvaluator()), 8, 1)
    assert found.won == 0
    assert found.truncated + found.drawn == 8
    assert found.mean_plies_to_win is None


def test_the_suite_is_queen_and_rook_endings_of_either_side(chess_game):
    suite = won_positions(chess_game, 200)
    boards = [chess.Board(chess_game.format_state(state)) for state in suite]
    assert len({board.epd() for board in boards}) == 200
    for board in boards:
        assert board.is_valid()
        assert not board.is_game_over()
        balance = sum(
            worth * (len(board.pieces(kind, board.turn)) - len(board.pieces(kind, not board.turn)))
            for kind, worth in MATERIAL.items()
        )
        assert abs(balance) >= 5
    assert {strong_side(board) for board in boards} == {chess.WHITE, chess.BLACK}
    assert {strong_side(board) == board.turn for board in boards} == {True, False}


def test_a_longer_suite_begins_with_the_shorter_one(chess_game):
    np.testing.assert_array_equal(
        won_positions(chess_game, 50)[:7], won_positions(chess_game, 7)
    )
    assert (won_positions(chess_game, 7, seed=1) != won_positions(chess_game, 7)).any()


def test_a_game_without_such_positions_is_refused():
    class Even(SubtractionGame):
        def practice_states(self, seeds):
            return self.initial_states(seeds)

    with pytest.raises(ConfigError, match="subtraction"):
        won_positions(Even(), 3)


@pytest.mark.parametrize(("num_positions", "max_plies"), [(0, 10), (4, 0)])
def test_nothing_to_play(chess_game, num_positions, max_plies):
    search = PolicySearch(chess_game, UniformEvaluator())
    with pytest.raises(ConfigError, match="got 0"):
        conversion_rate(chess_game, search, num_positions, max_plies)
