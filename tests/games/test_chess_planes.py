"""Bitplanes, action numbers and the mirror, from the side to move's view."""

import random

import chess
import chess_oracle as oracle
import numpy as np
import pytest

from chess_snn.games import get_game
from chess_snn.games.chess import PLANE_NAMES, action_of_move, from_board, move_of_action
from chess_snn.games.chess.actions import DECODED_ACTION, MIRRORED_ACTION, NUM_ACTIONS, OFF_BOARD
from chess_snn.games.chess.layout import META, RECORD_WORDS, REPETITIONS_SHIFT

GAME = get_game("chess")


def plane(words, name):
    return int(words[PLANE_NAMES.index(name)])


@pytest.fixture(scope="module")
def boards():
    return list(oracle.random_boards(random.Random(3), 300))


def states_of(boards):
    return np.stack([from_board(board) for board in boards])


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
    assert len(PLANE_NAMES) == len(set(PLANE_NAMES)) == 48
    assert PLANE_NAMES.index("ones") + 1 == GAME.spec.num_planes == 48 - GAME.spec.num_rule_planes


def test_initial_position_by_name():
    words = GAME.planes(GAME.initial_states(np.zeros(1, np.uint64)))[0]
    assert plane(words, "own pawns") == chess.BB_RANK_2
    assert plane(words, "their king") == chess.BB_E8
    assert plane(words, "their queen side castling") == chess.BB_ALL
    assert plane(words, "en passant square") == 0
    assert plane(words, "ones") == chess.BB_ALL
    assert plane(words, "attacked by own pawns") == chess.BB_RANK_3
    assert plane(words, "attacked by their queens") == chess.SquareSet(
        [chess.C8, chess.E8, chess.C7, chess.D7, chess.E7]
    )


def test_what_attacks_what_by_name():
    words = GAME.planes(GAME.parse_state("4k3/8/8/3p4/8/1N6/P1P5/R3K3 w Q - 0 1")[None])[0]
    for name, squares in (
        ("attacked by own pawns", "b3 d3"), ("attacked by their pawns", "c4 e4"),
        ("attacked by own rooks", "a2 b1 c1 d1 e1"),
        ("attacked by own knights", "a1 a5 c1 c5 d2 d4"),
        ("attacked by two own pieces", "b3 c1 d1 d2"),
        ("attacked by two their pieces", ""),
        ("a knight would attack their king", "c7 d6 f6 g7"),
        ("a bishop would attack own king", "a5 b4 c3 d2 f2 g3 h4"),
        ("a rook would attack own king", "a1 b1 c1 d1 f1 g1 h1 e2 e3 e4 e5 e6 e7 e8"),
    ):
        found = {chess.square_name(square) for square in chess.SquareSet(plane(words, name))}
        assert found == set(squares.split()), name


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


# The numbering of actions, against the geometry of moves and a few numbers worked out by hand.


BY_HAND = {
    ("e2e4", chess.WHITE): 12 * 73 + 1,  # ahead, two squares
    ("e7e5", chess.BLACK): 12 * 73 + 1,
    ("a1h8", chess.WHITE): 0 * 73 + 1 * 7 + 6,  # along the long diagonal
    ("h8a8", chess.BLACK): 7 * 73 + 6 * 7 + 6,  # files are not mirrored
    ("g1f3", chess.WHITE): 6 * 73 + 63,
    ("g8f6", chess.BLACK): 6 * 73 + 63,
    ("e1g1", chess.WHITE): 4 * 73 + 2 * 7 + 1,
    ("e8c8", chess.BLACK): 4 * 73 + 6 * 7 + 1,
    ("a7a8q", chess.WHITE): 48 * 73 + 0,
    ("a7b8n", chess.WHITE): 48 * 73 + 66,
    ("b2a1b", chess.BLACK): 49 * 73 + 67,
    ("h7h8r", chess.WHITE): 55 * 73 + 71,
}


@pytest.mark.parametrize(("uci", "turn"), BY_HAND)
def test_worked_out_by_hand(uci, turn):
    assert action_of_move(chess.Move.from_uci(uci), turn) == BY_HAND[uci, turn]


@pytest.mark.parametrize("turn", chess.COLORS)
def test_every_piece_move_has_its_own_number(turn):
    """All moves of a queen, a knight and a promoting pawn on an otherwise empty board."""
    moves = set()
    board = chess.Board(None)
    for square in chess.SQUARES:
        for piece in (chess.QUEEN, chess.KNIGHT):
            board.set_piece_at(square, chess.Piece(piece, turn))
            moves |= {chess.Move(square, target) for target in board.attacks(square)}
            board.remove_piece_at(square)
    last, before_last = (7, 6) if turn else (0, 1)
    for file in range(8):
        for target_file in {max(0, file - 1), file, min(7, file + 1)}:
            ends = chess.square(file, before_last), chess.square(target_file, last)
            moves |= {chess.Move(*ends, piece) for piece in (2, 3, 4)}
    actions = {action_of_move(move, turn) for move in moves}
    assert actions == {oracle.action_of(move, turn) for move in moves}
    assert len(actions) == len(moves)
    assert actions == set(np.flatnonzero(DECODED_ACTION != OFF_BOARD).tolist())
    assert max(actions) < NUM_ACTIONS
    board.turn = turn
    assert {move_of_action(board, action) for action in actions} == moves


def test_queen_move_of_a_pawn_to_the_last_rank_promotes_to_a_queen():
    pawn = chess.Board("8/P3k3/8/8/8/8/8/4K3 w - - 0 1")
    rook = chess.Board("8/R3k3/8/8/8/8/8/4K3 b - - 0 1").mirror()
    action = action_of_move(chess.Move.from_uci("a7a8q"), chess.WHITE)
    assert move_of_action(pawn, action).uci() == "a7a8q"
    rook.turn = chess.WHITE
    assert move_of_action(rook, action).uci() == "a7a8"


# Mirrored positions and actions against python-chess's own horizontal flip.


NO_ACTIONS = np.zeros((1, 0), dtype=np.int16)


@pytest.fixture(scope="module")
def flippable():
    """Boards without castling rights, some with an en passant capture."""
    flippable = list(map(chess.Board, oracle.ODD_POSITIONS))
    flippable += oracle.random_boards(random.Random(11), 300)
    for board in flippable:
        board.castling_rights = chess.BB_EMPTY
    assert sum(board.has_legal_en_passant() for board in flippable) >= 5
    return flippable


def flipped(board):
    return board.transform(chess.flip_horizontal)


def mirror(states, actions):
    return GAME.transform(states, actions, np.ones(len(states), np.uint8))


def mirror_state(state):
    return mirror(state[None], NO_ACTIONS)[0][0]


def test_states_equal_the_flipped_boards_keys_included(flippable):
    for board in flippable:
        mirrored = mirror_state(from_board(board))
        np.testing.assert_array_equal(mirrored, from_board(flipped(board)), err_msg=board.fen())


def test_records_without_a_key_are_mirrored_alike(flippable):
    states = np.stack([from_board(board) for board in flippable])
    no_actions = np.zeros((len(flippable), 0), dtype=np.int16)
    records, _ = mirror(states[:, :RECORD_WORDS], no_actions)
    np.testing.assert_array_equal(records, mirror(states, no_actions)[0][:, :RECORD_WORDS])


def test_an_action_means_the_flipped_move(flippable):
    for board in flippable:
        for move in board.legal_moves:
            ends = (square ^ 7 for square in (move.from_square, move.to_square))
            expected = oracle.action_of(chess.Move(*ends, move.promotion), board.turn)
            assert MIRRORED_ACTION[oracle.action_of(move, board.turn)] == expected, board.fen()


def test_every_action_has_its_own_mirror_image():
    everything = np.arange(GAME.spec.num_actions)
    np.testing.assert_array_equal(np.sort(MIRRORED_ACTION), everything)
    np.testing.assert_array_equal(MIRRORED_ACTION[MIRRORED_ACTION], everything)


def test_planes_are_mirrored(flippable):
    for board in flippable:
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
