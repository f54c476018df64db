"""Positions as text: FEN, lines of UCI. python-chess says what they mean."""

import random
from functools import cache

import chess
import numpy as np
import pytest
from damaged_inputs import changed_bytes, changed_words, either, fuzz, text_of

from chess_snn.errors import IllegalMoveError, PositionError
from chess_snn.games import get_game
from chess_snn.games.chess import from_board, to_board
from chess_snn.games.chess.layout import CLOCK_MASK, FULLMOVE_MASK
from chess_snn.games.chess.notation import action_of_move
from chess_snn.uci.commands import parse_go, parse_option, parse_position, split_line
from chess_snn.uci.options import Options, set_option
from chess_snn.uci.position import Position
from chess_snn.uci.session import COMMANDS

GAME = get_game("chess")
_AT_START = {chess.KNIGHT: 2, chess.BISHOP: 2, chess.ROOK: 2, chess.QUEEN: 1}

FENS = (
    chess.STARTING_FEN,
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r3k2r/8/8/3pP3/8/8/8/R3K2R w KQkq d6 0 1",
    "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 99 200",
    "4k3/8/8/8/2pP4/8/8/4K2B b - d3 0 1",
    "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1",
    "7k/5Q2/8/8/8/8/8/K7 w - - 0 1",
)
_FEN_WORDS = (
    b"w", b"b", b"-", b"KQkq", b"Kq", b"HAha", b"e3", b"d6", b"a9", b"0", b"1", b"-1", b"255",
    b"256", b"65535", b"65536", b"99999999999", b"8/8/8/8/8/8/8/8", b"7k/8/8/8/8/8/8/K6Q",
    b"ppppkppp/8/8/8/8/8/8/K7", b"k7/8/8/8/8/8/8/K7", b"/", b"8", b"K~", b"x", b"\xd9\xa1",
)
_FEN_LETTERS = tuple(letter.encode() for letter in "pnbrqkPNBRQK12345678/ wb-~")
UCI_WORDS = (
    b"uci", b"isready", b"ucinewgame", b"stop", b"ponderhit", b"quit", b"debug", b"register",
    b"position", b"startpos", b"fen", b"moves", b"go", b"nodes", b"depth", b"mate", b"movetime",
    b"wtime", b"btime", b"winc", b"binc", b"movestogo", b"infinite", b"ponder", b"searchmoves",
    b"perft", b"d", b"eval",
    b"setoption", b"name", b"value", b"MultiPV", b"Temperature", b"UCI_ShowWDL", b"Simulations",
    b"Ticks", b"Precision", b"bf16", b"true", b"e2e4", b"e7e5", b"e1g1", b"e7e8q", b"a7a8k",
    b"0000", b"e2e2", b"z9z9", b"(none)", b"-1", b"0", b"1", b"3", b"99999999999999999999", b"1e9",
    b"NaN", *_FEN_WORDS,
)
_UCI_LINES = (
    b"uci", b"isready", b"ucinewgame", b"stop", b"ponderhit", b"quit", b"debug on",
    b"position startpos", b"go wtime 1000 btime 1000 winc 10 binc 10 movestogo 3",
    b"go nodes 5 depth 3 mate 1", b"go searchmoves e2e4 d2d4 infinite", b"go ponder movetime 50",
    b"go", b"go perft 2", b"d", b"eval", b"bench", b"\xef\xbb\xbfuci",
    b"setoption name MultiPV value 2", b"setoption name Move Overhead value 1",
    b"setoption name Temperature value 0.5", b"setoption name UCI_ShowWDL value true",
    b"setoption name Precision value int8", b"setoption name Model value a b/c",
)
changed_uci_line = either(changed_words(*UCI_WORDS), changed_bytes(*UCI_WORDS))


def refuses(fen: str) -> bool:
    """Whether python-chess refuses ``fen``, or it is one that we document to refuse."""
    try:
        board = chess.Board(fen.strip())
    except ValueError:
        return True
    board.promoted = chess.BB_EMPTY
    return (
        board.status() != chess.STATUS_VALID
        or board.halfmove_clock > CLOCK_MASK
        or board.fullmove_number > FULLMOVE_MASK
        or any(_has_too_many(board, color) for color in chess.COLORS)
    )


def _has_too_many(board: chess.Board, color: chess.Color) -> bool:
    """Whether it has more promoted pieces than pawns are missing."""
    extra = sum(max(0, len(board.pieces(p, color)) - n) for p, n in _AT_START.items())
    return extra > 8 - len(board.pieces(chess.PAWN, color))


def random_games(count: int, plies: int) -> list[chess.Board]:
    """Boards with their moves, of games of random moves."""
    stream, boards = random.Random(1), []
    for _ in range(count):
        board = chess.Board(stream.choice(FENS))
        while len(board.move_stack) < plies and (moves := list(board.legal_moves)):
            board.push(stream.choice(moves))
        boards.append(board)
    return boards


@cache
def uci_lines() -> tuple[bytes, ...]:
    """Every kind of line, and games of all FENS."""
    games = []
    for board in random_games(12, 9):
        moves = " ".join(move.uci() for move in board.move_stack)
        games.append(f"position fen {board.root().fen()} moves {moves}".encode())
    return *_UCI_LINES, *games


def _assert_same_position(batch, board: chess.Board) -> None:
    """A row of a batch and python-chess's board are equal and have the same legal moves."""
    assert to_board(batch.state[0]).fen() == board.fen()
    listed = set(batch.legal_actions[0, : batch.num_legal[0]].tolist())
    assert listed == {action_of_move(move, board.turn) for move in board.legal_moves}


@pytest.mark.fault(20)
@fuzz(
    lambda: [fen.encode() for fen in FENS],
    either(changed_bytes(*_FEN_LETTERS), changed_words(*_FEN_WORDS)),
)
def test_fen(data):
    """Both accept the same inputs, we and python-chess, and read them alike."""
    text = text_of(data)
    try:
        state = GAME.parse_state(text)
    except PositionError:
        assert refuses(text), "refused, though python-chess accepts it"
        raise
    board = chess.Board(text.strip())
    assert GAME.format_state(state) == board.fen()
    np.testing.assert_array_equal(from_board(board), state)
    batch = GAME.allocate(1)
    GAME.reset(batch, np.zeros(1, np.int64), state[None])
    if batch.num_legal[0]:
        _assert_same_position(batch, board)


@pytest.mark.fault(20)
@fuzz(uci_lines, changed_uci_line)
def test_uci_line(data):
    """A line from a GUI is read, and its position is that of python-chess."""
    line = text_of(data)
    command, arguments = split_line(line, COMMANDS)
    assert command in ("", *line.split())
    match command:
        case "go":
            limits, _ = parse_go(arguments)
            numbers = [getattr(limits, name) for name in limits.__slots__]
            assert all(n is None or isinstance(n, tuple) or n >= 0 for n in numbers)
            limits.seconds(white_to_move=True, overhead_s=0.1)
        case "setoption":
            name, value = parse_option(arguments)
            changed, default = set_option(Options(), name, value), Options()
            names = [n for n in Options.__slots__ if getattr(changed, n) != getattr(default, n)]
            assert len(names) <= 1
        case "position":
            _check_position(*parse_position(arguments))


def _check_position(fen: str | None, moves: tuple[str, ...]) -> None:
    try:
        position = Position.after(GAME, fen, moves)
    except (PositionError, IllegalMoveError):
        assert (fen is not None and refuses(fen)) or _has_illegal(fen, moves)
        raise
    board = chess.Board(fen.strip() if fen else chess.STARTING_FEN)
    for move in moves:
        board.push_uci(move)
    assert position.board.fen() == board.fen()
    if position.is_searchable and board.halfmove_clock < 100:
        _assert_same_position(position.root, board)


def _has_illegal(fen: str | None, moves: tuple[str, ...]) -> bool:
    board = chess.Board(fen.strip() if fen else chess.STARTING_FEN)
    for move in moves:
        try:
            if not board.push_uci(move):
                return True
        except ValueError:
            return True
    return False
