"""FEN and UCI in and out; what is malformed or impossible is one clear line."""

import random

import chess
import chess_oracle as oracle
import numpy as np
import pytest

from chess_snn.errors import IllegalMoveError, PositionError
from chess_snn.games import get_game
from chess_snn.games.chess import from_board, move_of_action, to_board

GAME = get_game("chess")
START = chess.STARTING_FEN

IMPOSSIBLE = {
    "4k3/8/8/8/8/8/8/8 w - - 0 1": "no white king",
    "8/8/8/8/8/8/8/4K3 w - - 0 1": "no black king",
    "4k3/8/8/8/8/8/8/3KK3 w - - 0 1": "too many kings",
    "4k3/8/8/8/8/P7/PPPPPPPP/4K3 w - - 0 1": "too many white pawns",
    "4k3/4R3/8/8/8/8/8/4K3 w - - 0 1": "opposite check",
    "4k3/8/8/8/8/8/8/P3K3 w - - 0 1": "pawns on backrank",
    "4k3/8/8/8/8/8/8/4K3 w KQ - 0 1": "bad castling rights",
    "1rk2r2/8/8/8/8/8/8/1RK2R2 w FBfb - 0 1": "bad castling rights",
    "4k3/8/8/8/8/8/8/4K3 w - e6 0 1": "invalid ep square",
    "4k3/8/8/8/1b6/8/3N4/r3K2r w - - 0 1": "impossible check",
    "8/8/8/8/8/8/8/8 w - - 0 1": "empty",
    "QQQQQ3/QQQQQ3/8/8/8/8/5ppp/K5bk w - - 0 1": "white has 9 promoted pieces and only 8 pawns",
    "4k3/8/8/8/8/8/PPPPPPPP/NNN1K3 w - - 0 1": "white has 1 promoted pieces and only 0 pawns",
    "4k3/8/8/8/8/8/8/4K3 w - - 9999 1": "halfmove clock .* must be <= 255, got 9999",
    "4k3/8/8/8/8/8/8/4K3 w - - 256 1": "halfmove clock .* must be <= 255, got 256",
    "4k3/8/8/8/8/8/8/4K3 w - - 0 65536": "move number .* must be <= 65535, got 65536",
}

MALFORMED = (
    "",
    "  ",
    "8",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP w KQkq - 0 1",
    "rnbqkbnr/pppppppp/9/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "rnbqkbnr/pppppppp/44/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "rnbqkbnr/ppppxppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR x KQkq - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w XYZ - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq z9 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - x 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - -1 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1 extra words",
    "♜♞♝♛♚♝♞♜/♟♟♟♟♟♟♟♟/8/8/8/8/♙♙♙♙♙♙♙♙/♖♘♗♕♔♗♘♖ w KQkq - 0 1",
    "\ud800\x00\u202e",
)


@pytest.mark.fault(20)
@pytest.mark.parametrize("fen", IMPOSSIBLE)
def test_impossible_position_names_fen_and_reason(fen):
    with pytest.raises(PositionError, match=IMPOSSIBLE[fen]) as raised:
        GAME.parse_state(fen)
    assert fen.split()[0] in str(raised.value)


@pytest.mark.fault(20)
@pytest.mark.parametrize("fen", MALFORMED)
def test_malformed_fen_is_named(fen):
    with pytest.raises(PositionError) as raised:
        GAME.parse_state(fen)
    assert repr(fen) in str(raised.value)


@pytest.mark.parametrize("fen", [START, *oracle.ODD_POSITIONS])
def test_fen_equals_python_chess(fen):
    assert GAME.format_state(GAME.parse_state(fen)) == chess.Board(fen).fen()


def test_surrounding_space_and_missing_counters_are_accepted():
    spaced = GAME.parse_state(f"  {START}\n")
    short = GAME.parse_state(START.removesuffix(" 0 1"))
    np.testing.assert_array_equal(spaced, GAME.parse_state(START))
    np.testing.assert_array_equal(short, spaced)


def test_promoted_king_mark_bug():
    """`K~` hides a king from python-chess's check for a side left in check."""
    with pytest.raises(PositionError):
        GAME.parse_state("4k~3/4R3/8/8/8/8/8/4K3 w - - 0 1")


def test_en_passant_square_without_a_capture_is_dropped():
    played = GAME.parse_state("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1")
    plain = GAME.parse_state("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1")
    np.testing.assert_array_equal(played, plain)


def test_from_board_refuses_chess960_rights():
    board = chess.Board.from_chess960_pos(0)
    with pytest.raises(PositionError):
        from_board(board)


def test_from_board_leaves_the_board_alone():
    board = chess.Board()
    board.push_san("e4")
    from_board(board)
    assert board.move_stack == [chess.Move.from_uci("e2e4")]


def test_board_and_state_convert_both_ways():
    for board in oracle.random_boards(random.Random(5), 200):
        again = to_board(from_board(board))
        assert again.fen() == board.fen()
        assert again._transposition_key() == board._transposition_key()


def test_a_record_is_enough_for_text():
    state = GAME.parse_state(oracle.ODD_POSITIONS[0])
    assert GAME.format_state(state[: GAME.spec.record_words]) == oracle.ODD_POSITIONS[0]


@pytest.mark.parametrize("text", ["e2e5", "e7e5", "0000", "nonsense", "", "e2", "e2e4q", "\x00"])
def test_illegal_move_names_move_and_position(text):
    with pytest.raises(IllegalMoveError) as raised:
        GAME.parse_action(GAME.parse_state(START), text)
    assert str(raised.value) == f"move {text!r} is illegal in {START!r}"


@pytest.mark.parametrize("action", [-1, 4672, 7 * 73 + 7 * 2])
def test_action_that_no_piece_makes(action):
    with pytest.raises(IllegalMoveError, match=f"{action}"):
        move_of_action(chess.Board(), action)
