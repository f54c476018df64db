"""Bitplanes, material and actions from the side to move's point of view."""

import random

import chess
import chess_oracle as oracle
import numpy as np
import pytest

from chess_snn.games import get_game
from chess_snn.games.chess import PLANE_NAMES, from_board
from chess_snn.games.chess.layout import META, REPETITIONS_SHIFT

GAME = get_game("chess")


def plane(words, name):
    return int(words[PLANE_NAMES.index(name)])


@pytest.fixture(scope="module")
def boards():
    return list(oracle.random_boards(random.Random(3), 300))


def states_of(boards):
    return np.stack([from_board(board) for board in boards])


def legal_sets(boards):
    batch = GAME.allocate(len(boards))
    GAME.reset(batch, np.arange(len(boards)), states_of(boards))
    return [
        set(row[:count].tolist())
        for row, count in zip(batch.legal_actions, batch.num_legal, strict=True)
    ]


def test_planes_equal_the_oracle(boards):
    planes = oracle.expand(GAME.planes(states_of(boards)))
    expected = np.stack([oracle.planes(board) for board in boards])
    np.testing.assert_array_equal(planes, expected)


def test_colour_flip_leaves_planes_as_they_are(boards):
    mirrored = [board.mirror() for board in boards]
    np.testing.assert_array_equal(GAME.planes(states_of(boards)), GAME.planes(states_of(mirrored)))


def test_colour_flip_leaves_actions_as_they_are(boards):
    assert legal_sets(boards) == legal_sets([board.mirror() for board in boards])


def test_colour_flip_leaves_material_as_it_is(boards):
    mirrored = [board.mirror() for board in boards]
    np.testing.assert_array_equal(
        GAME.heuristic_stm(states_of(boards)), GAME.heuristic_stm(states_of(mirrored))
    )


def test_passing_the_move_negates_material():
    white = GAME.parse_state("4k3/pp6/8/8/8/8/PPP5/QRBNK3 w - - 0 1")
    black = GAME.parse_state("4k3/pp6/8/8/8/8/PPP5/QRBNK3 b - - 0 1")
    assert GAME.heuristic_stm(np.stack([white, black])).tolist() == [21, -21]


def test_names_match_the_spec():
    assert len(PLANE_NAMES) == len(set(PLANE_NAMES)) == GAME.spec.num_planes == 28


def test_initial_position_by_name():
    words = GAME.planes(GAME.initial_states(np.zeros(1, np.uint64)))[0]
    assert plane(words, "own pawns") == chess.BB_RANK_2
    assert plane(words, "their king") == chess.BB_E8
    assert plane(words, "their queen side castling") == chess.BB_ALL
    assert plane(words, "en passant square") == 0
    assert plane(words, "ones") == chess.BB_ALL


@pytest.mark.parametrize(("clock", "num_lit"), [(0, 0), (3, 0), (4, 1), (63, 5), (96, 8), (255, 8)])
def test_clock_thermometer(clock, num_lit):
    words = GAME.planes(GAME.parse_state(f"4k3/8/8/8/8/8/8/R3K3 b - - {clock} 200")[None])[0]
    lit = [words[i] == chess.BB_ALL for i, name in enumerate(PLANE_NAMES) if "clock" in name]
    assert lit == [True] * num_lit + [False] * (8 - num_lit)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_repetition_thermometer(count):
    state = GAME.parse_state(chess.STARTING_FEN)
    state[META] |= np.uint64(count) << REPETITIONS_SHIFT
    words = GAME.planes(state[None])[0]
    assert plane(words, "repetitions >= 1") == (chess.BB_ALL if count >= 1 else 0)
    assert plane(words, "repetitions >= 2") == (chess.BB_ALL if count >= 2 else 0)
