"""Standard algebraic notation, both ways, beside python-chess on thousands of random positions."""

import random

import chess
import numpy as np
import pytest
from chess_oracle import ODD_POSITIONS, legal_actions, random_boards

from chess_snn.games.chess import from_board
from chess_snn.games.chess.layout import MAX_LEGAL
from chess_snn.games.chess.movegen import generate
from chess_snn.games.chess.san import AMBIGUOUS, ILLEGAL, LONGEST_SAN, find_action, write_san
from chess_snn.pgn.moves import UNREADABLE, read_move


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
    for k, board in enumerate(boards(3, 400)):
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
