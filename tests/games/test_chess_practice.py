"""Practice positions: possible, going on, and won, as a solver of its own finds."""

import random
from collections import Counter

import chess
import ending_solver
import numpy as np
import pytest

from chess_snn.games import get_game
from chess_snn.games.chess import from_board, to_board

GAME = get_game("chess")
NUM_POSITIONS = 4000
SOLVED = {
    chess.PAWN: ending_solver.PAWN,
    chess.ROOK: ending_solver.ROOK,
    chess.QUEEN: ending_solver.QUEEN,
}
SHARES = {"Q": 4, "R": 3, "QQ": 2, "QR": 3, "RR": 2, "P": 2}


@pytest.fixture(scope="module")
def boards():
    states = GAME.practice_states(np.arange(NUM_POSITIONS, dtype=np.uint64))
    return [to_board(state) for state in states]


def strong_side(board):
    return chess.popcount(board.occupied_co[chess.WHITE]) > 1


def army(board):
    """The strong side's pieces beside its king, such as "QR"."""
    pieces = (piece.symbol().upper() for piece in board.piece_map().values())
    return "".join(sorted(pieces)).replace("K", "")


def test_python_chess_finds_them_possible_and_going_on(boards):
    for board in boards:
        assert board.is_valid(), (board.fen(), board.status())
        assert not board.is_game_over(), board.fen()
        assert chess.popcount(board.occupied_co[not strong_side(board)]) == 1


def test_rows_are_those_of_the_boards(boards):
    states = GAME.practice_states(np.arange(NUM_POSITIONS, dtype=np.uint64))
    np.testing.assert_array_equal(states, np.stack([from_board(board) for board in boards]))


def test_armies_come_in_their_shares(boards):
    counts = Counter(map(army, boards))
    assert set(counts) == set(SHARES)
    for name, sixteenths in SHARES.items():
        expected = NUM_POSITIONS * sixteenths / 16
        assert abs(counts[name] - expected) < 5 * expected**0.5, (name, counts)


def test_both_colours_are_strong_and_both_sides_move(boards):
    counts = Counter((strong_side(board), board.turn) for board in boards)
    assert len(counts) == 4
    assert min(counts.values()) > 0.2 * NUM_POSITIONS


def test_the_weak_side_cannot_take_anything(boards):
    for board in boards:
        if board.turn != strong_side(board):
            assert not any(board.generate_legal_captures()), board.fen()


@pytest.mark.slow
def test_a_lone_piece_wins_for_certain(boards):
    won = ending_solver.solve()
    num_solved = Counter()
    for original in boards:
        board = original if strong_side(original) == chess.WHITE else original.mirror()
        if len(army(board)) > 1:
            continue
        king, enemy = board.king(chess.WHITE), board.king(chess.BLACK)
        (square,) = chess.SquareSet(board.occupied & ~board.kings)
        kind = board.piece_type_at(square)
        turn = ending_solver.WHITE if board.turn else ending_solver.BLACK
        assert won[SOLVED[kind], turn, king, enemy, square], original.fen()
        num_solved[kind] += 1
    assert min(num_solved[kind] for kind in SOLVED) > 0.1 * NUM_POSITIONS


@pytest.mark.slow
def test_the_solver_knows_the_famous_counts():
    """King and pawn: 124,960 won with white to move, and 97,604 with black, both wings counted."""
    won = ending_solver.solve()
    assert won[ending_solver.PAWN, ending_solver.WHITE].sum() == 124_960
    assert won[ending_solver.PAWN, ending_solver.BLACK].sum() == 97_604
    assert won[ending_solver.ROOK, ending_solver.WHITE].sum() == 175_168  # all of them


def test_pawns_win_by_running_and_by_their_king(boards):
    led = Counter()
    for board in boards:
        if army(board) == "P":
            strong = strong_side(board)
            (pawn,) = board.pieces(chess.PAWN, strong)
            ranks = chess.square_rank(board.king(strong)) - chess.square_rank(pawn)
            led[ranks == (2 if strong else -2)] += 1
    assert min(led.values()) > 0.3 * sum(led.values()), led


# Mate in one against python-chess, which makes every move.


MATES = {
    "back rank": ("6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1", {"a1a8"}),
    "queen defended": (
        "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4", {"h5f7"}
    ),
    "castling": ("8/1p6/p7/4Q3/1P5R/2B2k2/N7/R3K2R w KQ - 0 1", {"e1g1"}),
    "en passant": ("6R1/8/4K2k/4R1pP/5Q2/2Q3B1/8/8 w - g6 0 1", {"h5g6"}),
    "promotion to a knight": ("4BR2/3P3r/1K2k3/2Q5/6pp/8/8/2N5 w - - 0 1", {"d7d8n"}),
    "capture with it": ("6kr/4B1P1/5p1R/8/6Q1/6p1/8/1K3N2 w - - 0 1", {"g7h8n"}),
    "uncovered by the king": ("B7/7R/k7/3N4/1p6/K7/Q2Pp3/8 w - - 0 1", {"a3b4"}),
    "none, in check": ("rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3", set()),
}


def found(boards):
    states = np.stack([from_board(board) for board in boards])
    return GAME.winning_actions(states, *GAME.legal_actions(states))


def mating_moves(board):
    mates = set()
    for move in board.legal_moves:
        board.push(move)
        if board.is_checkmate():
            mates.add(move.uci())
        board.pop()
    return mates


def assert_as_python_chess(boards):
    num_mates = 0
    for board, action in zip(boards, found(boards), strict=True):
        mates = mating_moves(board)
        if not mates:
            assert action == -1, board.fen()
            continue
        num_mates += 1
        assert action >= 0, (board.fen(), mates)
        assert GAME.format_action(from_board(board), int(action)) in mates, board.fen()
    return num_mates


@pytest.mark.parametrize("name", MATES)
def test_known_positions(name):
    fen, expected = MATES[name]
    board = chess.Board(fen)
    assert mating_moves(board) == expected
    assert_as_python_chess([board, board.mirror()])


def test_every_position_of_random_games_with_few_pieces():
    """Kings in the open and heavy pieces: some of a hundred positions have a mate."""
    stream = random.Random(3)
    boards = []
    while len(boards) < 3000:
        board = chess.Board(None)
        squares = stream.sample(chess.SQUARES, 8)
        pieces = ["K", "k", *stream.choices("QRBNPqrbnp", k=6)]
        for square, symbol in zip(squares, pieces, strict=True):
            board.set_piece_at(square, chess.Piece.from_symbol(symbol))
        board.turn = stream.random() < 0.5
        if board.is_valid() and any(board.legal_moves):
            boards.append(board)
    assert assert_as_python_chess(boards) > 100


def test_every_position_of_games_to_the_end():
    stream = random.Random(5)
    boards = []
    while len(boards) < 2500:
        board = chess.Board()
        while not board.is_game_over() and board.ply() < 160:
            boards.append(board.copy(stack=False))
            board.push(stream.choice(list(board.legal_moves)))
    assert assert_as_python_chess(boards) > 5


def test_ended_rows_have_none():
    mated = from_board(chess.Board("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"))[None]
    legal, _ = GAME.legal_actions(mated)
    assert GAME.winning_actions(mated, legal, np.zeros(1, np.int32)).tolist() == [-1]
