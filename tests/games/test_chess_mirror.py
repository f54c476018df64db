"""Mirrored positions and actions against python-chess's own horizontal flip."""

import random

import chess
import chess_oracle as oracle
import numpy as np
import pytest

from chess_snn.games import get_game
from chess_snn.games.chess import from_board
from chess_snn.games.chess.actions import MIRRORED_ACTION
from chess_snn.games.chess.layout import META, RECORD_WORDS, REPETITIONS_SHIFT

GAME = get_game("chess")
NO_ACTIONS = np.zeros((1, 0), dtype=np.int16)


@pytest.fixture(scope="module")
def boards():
    """Boards without castling rights, some with an en passant capture."""
    boards = list(map(chess.Board, oracle.ODD_POSITIONS))
    boards += oracle.random_boards(random.Random(11), 300)
    for board in boards:
        board.castling_rights = chess.BB_EMPTY
    assert sum(board.has_legal_en_passant() for board in boards) >= 5
    return boards


def flipped(board):
    return board.transform(chess.flip_horizontal)


def mirror(states, actions):
    return GAME.transform(states, actions, np.ones(len(states), np.uint8))


def mirror_state(state):
    return mirror(state[None], NO_ACTIONS)[0][0]


def test_states_equal_the_flipped_boards_keys_included(boards):
    for board in boards:
        mirrored = mirror_state(from_board(board))
        np.testing.assert_array_equal(mirrored, from_board(flipped(board)), err_msg=board.fen())


def test_records_without_a_key_are_mirrored_alike(boards):
    states = np.stack([from_board(board) for board in boards])
    no_actions = np.zeros((len(boards), 0), dtype=np.int16)
    records, _ = mirror(states[:, :RECORD_WORDS], no_actions)
    np.testing.assert_array_equal(records, mirror(states, no_actions)[0][:, :RECORD_WORDS])


def test_legal_actions_are_the_flipped_boards(boards):
    states = np.stack([from_board(board) for board in boards])
    legal_actions, num_legal = GAME.legal_actions(states)
    _, mirrored = mirror(states, legal_actions)
    for board, actions, count in zip(boards, mirrored, num_legal, strict=True):
        expected = oracle.legal_actions(flipped(board))
        assert set(actions[:count].tolist()) == set(expected), board.fen()


def test_an_action_means_the_flipped_move(boards):
    for board in boards:
        for move in board.legal_moves:
            ends = (square ^ 7 for square in (move.from_square, move.to_square))
            expected = oracle.action_of(chess.Move(*ends, move.promotion), board.turn)
            assert MIRRORED_ACTION[oracle.action_of(move, board.turn)] == expected, board.fen()


def test_every_action_has_its_own_mirror_image():
    everything = np.arange(GAME.spec.num_actions)
    np.testing.assert_array_equal(np.sort(MIRRORED_ACTION), everything)
    np.testing.assert_array_equal(MIRRORED_ACTION[MIRRORED_ACTION], everything)


def test_planes_are_mirrored(boards):
    for board in boards:
        state = from_board(board)
        state[META] |= np.uint64(1) << REPETITIONS_SHIFT
        planes = GAME.planes(state[None])[0].tolist()
        mirrored = GAME.planes(mirror_state(state)[None])[0].tolist()
        assert mirrored == [chess.flip_horizontal(plane) for plane in planes], board.fen()


@pytest.mark.parametrize("rights", ["K", "Q", "k", "q", "KQkq"])
def test_a_row_with_castling_rights_comes_back_as_it_was(rights):
    castling = GAME.parse_state(f"r3k2r/p7/8/8/8/8/7P/R3K2R w {rights} - 3 9")
    plain = GAME.parse_state("r3k2r/p7/8/8/8/8/7P/R3K2R w - - 3 9")
    states = np.stack([castling, plain])
    actions = np.array([[0, 5, -1], [0, 5, -1]], dtype=np.int16)
    mirrored_states, mirrored_actions = mirror(states, actions)
    np.testing.assert_array_equal(mirrored_states[0], castling)
    assert mirrored_actions[0].tolist() == [0, 5, -1]
    assert GAME.format_state(mirrored_states[1]) == "r2k3r/7p/8/8/8/8/P7/R2K3R w - - 3 9"
    assert mirrored_actions[1].tolist() == [7 * 73, 7 * 73 + 5, -1]
