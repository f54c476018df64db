"""Mate in one against python-chess, which makes every move."""

import random

import chess
import numpy as np
import pytest

from chess_snn.games import get_game
from chess_snn.games.chess import from_board

GAME = get_game("chess")
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
