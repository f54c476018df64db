"""FEN and UCI in and out; what is malformed or impossible is one clear line."""

import random

import chess
import chess_oracle as oracle
import numpy as np
import pytest
from chess_oracle import ODD_POSITIONS, legal_actions, random_boards

from chess_snn.errors import IllegalMoveError, PositionError
from chess_snn.games import get_game
from chess_snn.games.chess import from_board, move_of_action, to_board
from chess_snn.games.chess.layout import MAX_LEGAL
from chess_snn.games.chess.movegen import generate
from chess_snn.games.chess.san import AMBIGUOUS, ILLEGAL, LONGEST_SAN, find_action, write_san
from chess_snn.pgn.moves import UNREADABLE, read_move

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


@pytest.mark.parametrize("action", [-1, 4672, 7 * 73 + 7 * 2])
def test_action_that_no_piece_makes(action):
    with pytest.raises(IllegalMoveError, match=f"{action}"):
        move_of_action(chess.Board(), action)


# Standard algebraic notation, both ways, beside python-chess on thousands of random positions.


def boards(seed, count):
    """Positions that a state row can hold, the odd ones among them."""
    yield from map(chess.Board, ODD_POSITIONS)
    yield from random_boards(random.Random(seed), count)


def legal_list(board):
    row, legal = from_board(board), np.empty(MAX_LEGAL, np.int16)
    num_legal, _, _ = generate(row, legal)
    return row, legal, int(num_legal)


def word_of(text):
    text_bytes = np.frombuffer(text.encode(), np.uint8)
    word, end = read_move(text_bytes, 0)
    assert end == len(text_bytes), text
    return word


def ours(board, text):
    """Action, ILLEGAL, AMBIGUOUS or UNREADABLE, by name where it is no action."""
    word = word_of(text)
    if word == UNREADABLE:
        return "unreadable"
    action = find_action(*legal_list(board), word)
    return {ILLEGAL: "illegal", AMBIGUOUS: "ambiguous"}.get(action, action)


def theirs(board, text):
    actions = {move: action for action, move in legal_actions(board).items()}
    try:
        move = board.parse_san(text)
    except chess.InvalidMoveError:
        return "unreadable"
    except chess.AmbiguousMoveError:
        return "ambiguous"
    except chess.IllegalMoveError:
        return "illegal"
    return actions[move] if move else "illegal"


def test_every_legal_move_is_written_as_python_chess_writes_it_and_read_back():
    num_moves = 0
    buffer = np.zeros(LONGEST_SAN, np.uint8)
    for board in boards(1, 200):
        row, legal, num_legal = legal_list(board)
        actions = legal_actions(board)
        assert sorted(actions) == sorted(legal[:num_legal].tolist())
        for action, move in actions.items():
            san = board.san(move)
            end = write_san(row, legal, num_legal, action, buffer, 0)
            assert buffer[:end].tobytes().decode() == san.rstrip("+#"), (board.fen(), move)
            for text in (san, board.lan(move), move.uci()):
                assert ours(board, text) == action, (board.fen(), text)
            num_moves += 1
    assert num_moves > 2500


def test_an_action_that_is_not_legal_is_not_written():
    row, legal, num_legal = legal_list(chess.Board())
    buffer = np.zeros(LONGEST_SAN, np.uint8)
    assert write_san(row, legal, num_legal, 0, buffer, 3) == 3


def test_words_that_may_mean_no_move_or_several_are_judged_as_by_python_chess():
    rng = random.Random(2)
    seen = dict.fromkeys(("illegal", "ambiguous", "action"), 0)
    for k, board in enumerate(boards(3, 200)):
        moves = list(board.legal_moves)
        # Among the odd positions are those with many pieces of a kind.
        for _ in range(150 if k < len(ODD_POSITIONS) else 10):
            text = _any_word(rng, board, moves)
            expected = theirs(board, text)
            assert ours(board, text) == expected, (board.fen(), text)
            seen["action" if isinstance(expected, int) else expected] += 1
    assert min(seen.values()) > 20, seen


def _any_word(rng, board, moves):
    """Mostly a legal move with too much or too little said of where it comes from."""
    if not moves or rng.random() < 0.3:
        origin, target = rng.randrange(64), rng.randrange(64)
        piece, promotion = rng.choice("PNBRQK"), None
    else:
        move = rng.choice(moves)
        origin, target, promotion = move.from_square, move.to_square, move.promotion
        piece = chess.piece_symbol(board.piece_type_at(origin)).upper()
    file, rank = chess.square_name(origin)
    hint = rng.choice(("", file, rank, file + rank))
    suffix = "=" + chess.piece_symbol(promotion).upper() if promotion else ""
    if rng.random() < 0.1:
        suffix = rng.choice(("", "=Q", "=N"))
    word = piece.replace("P", "") + hint + rng.choice(("", "x")) + chess.square_name(target)
    return rng.choice((word + suffix, word + suffix, "O-O", "O-O-O"))


CASTLE = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1")
PROMOTE = chess.Board("3r1b2/4P3/8/8/8/8/8/k1K5 w - - 0 1")
EN_PASSANT = chess.Board("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1")


@pytest.mark.parametrize(("board", "text", "uci"), [
    (CASTLE, "O-O", "e1g1"), (CASTLE, "0-0", "e1g1"), (CASTLE, "o-o", "e1g1"),
    (CASTLE, "OO", "e1g1"), (CASTLE, "O-O-O", "e1c1"), (CASTLE, "0-0-0+!", "e1c1"),
    (CASTLE, "e1c1", "e1c1"),
    (PROMOTE, "e8=Q", "e7e8q"), (PROMOTE, "e8Q", "e7e8q"), (PROMOTE, "e8(R)", "e7e8r"),
    (PROMOTE, "e8/N+", "e7e8n"), (PROMOTE, "e7e8b", "e7e8b"), (PROMOTE, "e8b", "e7e8b"),
    (PROMOTE, "exd8=b", "e7d8b"), (PROMOTE, "exf8Q#", "e7f8q"), (PROMOTE, "e7xf8=N", "e7f8n"),
    (EN_PASSANT, "exd6e.p.", "e5d6"), (EN_PASSANT, "exd6ep+", "e5d6"),
    (EN_PASSANT, "Pe6", "e5e6"), (EN_PASSANT, "e5-e6", "e5e6"), (EN_PASSANT, "e5:d6!?", "e5d6"),
    (chess.Board(), "Ng1-f3", "g1f3"), (chess.Board(), "Ng1f3!!", "g1f3"),
])
def test_what_collections_hold_beside_the_standard(board, text, uci):
    move = chess.Move.from_uci(uci)
    expected = {m: a for a, m in legal_actions(board).items()}[move]
    assert ours(board, text) == expected


@pytest.mark.parametrize(("board", "text", "verdict"), [
    (CASTLE, "Kg1", "illegal"), (CASTLE, "Ke1c1", "illegal"), (PROMOTE, "e8", "illegal"),
    (PROMOTE, "e8=K", "unreadable"), (PROMOTE, "e7e8", "illegal"), (chess.Board(), "--", "illegal"),
    (chess.Board(), "Z0", "illegal"), (chess.Board(), "e4e5e6", "unreadable"),
    (chess.Board(), "Ni9", "unreadable"), (chess.Board(), "N", "unreadable"),
    (chess.Board(), "Sf3", "unreadable"), (chess.Board(), "O", "unreadable"),
    (chess.Board(), "O-O-O-O", "unreadable"), (chess.Board("4k3/8/8/8/8/8/8/R3K1R1 w - - 0 1"),
                                               "O-O", "illegal"),
    (chess.Board("5k2/8/8/8/8/8/8/1K2R3 w - - 0 1"), "O-O", "illegal"),
])
def test_what_is_no_move(board, text, verdict):
    assert ours(board, text) == verdict
