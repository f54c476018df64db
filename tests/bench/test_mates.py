"""Forced mates: the suite against python-chess, and what searches make of it."""

import chess
import numpy as np
import pytest

from benchmarks.mates import forced_wins, num_solved, winning_actions
from chess_snn.games import get_game
from chess_snn.nets import build_network, make_evaluator, net_config
from chess_snn.search import SearchSettings, make_search

GAME = get_game("chess")
SEARCHES = {"gumbel": (SearchSettings(), 200), "puct": (SearchSettings(kind="puct"), 800)}


def mates(board, move):
    board.push(move)
    is_mate = board.is_checkmate()
    board.pop()
    return is_mate


def forces(board, move):
    """Ask python-chess: after ``move`` there are replies, and each is answered by a mate."""
    board.push(move)
    replies = list(board.legal_moves)
    proved = bool(replies) and not board.is_insufficient_material()
    for reply in replies:
        board.push(reply)
        proved = proved and any(mates(board, last) for last in list(board.legal_moves))
        board.pop()
    board.pop()
    return proved


@pytest.mark.parametrize(("num_moves", "count"), [(1, 40), (2, 4)])
def test_the_suite_is_what_it_says(num_moves, count):
    suite = forced_wins(GAME, count, num_moves, seed=2)
    fens = [GAME.format_state(state) for state in suite.state]
    assert len(set(fens)) == count
    for row, fen in enumerate(fens):
        board = chess.Board(fen)
        at_once = [move for move in list(board.legal_moves) if mates(board, move)]
        if num_moves == 1:
            expected = at_once
        else:
            assert not at_once
            expected = [move for move in list(board.legal_moves) if forces(board, move)]
        found = winning_actions(GAME, suite.take(np.array([row])), num_moves)
        assert expected
        assert {GAME.format_action(suite.state[row], action) for action in found} == {
            move.uci() for move in expected
        }


@pytest.mark.parametrize("kind", ["gumbel", pytest.param("puct", marks=pytest.mark.slow)])
def test_an_untrained_network_finds_every_mate_in_one(kind):
    settings, simulations = SEARCHES[kind]
    suite = forced_wins(GAME, 30, 1, seed=1)
    network = build_network(GAME.spec, net_config("tiny"), seed=0)
    with make_evaluator(network, num_threads=2) as evaluator:
        search = make_search(
            GAME, evaluator, settings, simulations=simulations, num_games=len(suite)
        )
        assert num_solved(GAME, search, suite, 1) == 30
