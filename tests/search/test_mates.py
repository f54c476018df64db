"""Forced mates, found and proved by exhaustive search of random games."""

import dataclasses

import chess
import numpy as np
import pytest
from mate_suite import GAME, forces_mate_in_two, mates_in_one, mates_in_two, mating_actions

from chess_snn.nets import build_network, make_evaluator, net_config
from chess_snn.search import SearchSettings, make_tree_search

EVERY_ACTION = dataclasses.replace(SearchSettings(), considered_actions=GAME.spec.max_legal)
SETTINGS = {"gumbel": EVERY_ACTION, "puct": SearchSettings(kind="puct")}
ENOUGH = {"gumbel": 200, "puct": 800}
"""Simulations."""


def join(batches):
    """Batches of one as one batch."""
    joined = GAME.allocate(len(batches))
    for field in dataclasses.fields(joined):
        rows = [getattr(batch, field.name) for batch in batches]
        setattr(joined, field.name, np.concatenate(rows))
    return joined


@pytest.fixture(scope="module")
def evaluator():
    network = build_network(GAME.spec, net_config("tiny"), seed=0)
    with make_evaluator(network, num_threads=2) as evaluator:
        yield evaluator


def choices(search, batches):
    count = len(batches)
    return search.run(
        join(batches), np.zeros(count, np.uint64), np.zeros(count, np.int32),
        np.zeros(count, np.float32),
    ).actions


@pytest.mark.parametrize("kind", SETTINGS)
def test_an_untrained_network_finds_every_mate_in_one(evaluator, kind):
    suite = mates_in_one(100, seed=1)
    search = make_tree_search(
        GAME, evaluator, SETTINGS[kind], simulations=ENOUGH[kind], num_games=len(suite)
    )
    for batch, action in zip(suite, choices(search, suite), strict=True):
        assert action in mating_actions(batch), GAME.format_state(batch.state[0])


def test_the_suite_of_mates_in_two_is_what_it_says():
    for batch in mates_in_two(3, seed=2):
        board = chess.Board(GAME.format_state(batch.state[0]))
        assert not any(_mates(board, move) for move in board.legal_moves)
        keys = [
            GAME.parse_action(batch.state[0], move.uci())
            for move in list(board.legal_moves)
            if _forces(board, move)
        ]
        assert keys
        assert all(forces_mate_in_two(batch, key) for key in keys)


def _mates(board, move):
    board.push(move)
    try:
        return board.is_checkmate()
    finally:
        board.pop()


def _forces(board, move):
    """By python-chess: after ``move`` every reply is answered by a mate."""
    board.push(move)
    try:
        replies = list(board.legal_moves)
        if not replies or board.is_insufficient_material():
            return False
        for reply in replies:
            board.push(reply)
            mated = any(_mates(board, last) for last in list(board.legal_moves))
            board.pop()
            if not mated:
                return False
        return True
    finally:
        board.pop()
