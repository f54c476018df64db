"""Positions as text: FEN, lines of UCI, openings. python-chess says what they mean."""

import random

import chess
import numpy as np
from fuzzing import ACCEPTED, REFUSED, Target, Verdict
from mutation import octets, one_of, words

from chess_snn.errors import CorruptDataError, IllegalMoveError, PositionError
from chess_snn.evaluation import openings
from chess_snn.games import get_game
from chess_snn.games.chess import from_board, to_board
from chess_snn.games.chess.layout import CLOCK_MASK, FULLMOVE_MASK
from chess_snn.games.chess.notation import action_of_move
from chess_snn.uci.commands import Go, Nonsense, SetOption, SetPosition, Word, parse
from chess_snn.uci.options import Options, set_option
from chess_snn.uci.position import Position

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
FEN_WORDS = (
    b"w", b"b", b"-", b"KQkq", b"Kq", b"HAha", b"e3", b"d6", b"a9", b"0", b"1", b"-1", b"255",
    b"256", b"65535", b"65536", b"99999999999", b"8/8/8/8/8/8/8/8", b"7k/8/8/8/8/8/8/K6Q",
    b"ppppkppp/8/8/8/8/8/8/K7", b"k7/8/8/8/8/8/8/K7", b"/", b"8", b"K~", b"x", b"\xd9\xa1",
)
FEN_OCTETS = tuple(letter.encode() for letter in "pnbrqkPNBRQK12345678/ wb-~")


def text_of(data: bytes) -> str:
    """Any octets as a text, as a file system or a pipe may give it."""
    return data.decode("utf-8", "surrogateescape")


def refuses(fen: str) -> bool:
    """Whether python-chess takes ``fen`` for no position, or one that we say we do not hold."""
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


def assert_same_position(batch, board: chess.Board) -> None:
    """One row that goes on by the rules, and python-chess's board."""
    assert to_board(batch.state[0]).fen() == board.fen()
    listed = set(batch.legal_actions[0, : batch.num_legal[0]].tolist())
    assert listed == {action_of_move(move, board.turn) for move in board.legal_moves}


def try_fen(data: bytes) -> Verdict:
    text = text_of(data)
    try:
        state = GAME.parse_state(text)
    except PositionError:
        assert refuses(text), "refused, though python-chess takes it"
        raise
    board = chess.Board(text.strip())
    assert GAME.format_state(state) == board.fen()
    np.testing.assert_array_equal(from_board(board), state)
    batch = GAME.allocate(1)
    GAME.reset(batch, np.zeros(1, np.int64), state[None])
    if batch.num_legal[0]:
        assert_same_position(batch, board)
    return Verdict(True, (int(batch.termination[0]), board.turn, board.castling_rights))


def try_line(data: bytes) -> Verdict:
    """A line from a GUI: read, and done where it needs no search."""
    line = text_of(data)
    match parse(line):
        case Nonsense(fault):
            return Verdict(False, fault[:12])
        case Word(name):
            assert name in line.split()
            return Verdict(True, name)
        case Go(limits, faults):
            numbers = [getattr(limits, name) for name in limits.__slots__]
            assert all(number is None or number >= 0 for number in numbers
                       if not isinstance(number, tuple))
            limits.seconds(white_to_move=True, overhead_s=0.1)
            given = tuple(name for name in limits.__slots__ if getattr(limits, name))
            return Verdict(not faults, ("go", given, len(faults)))
        case SetOption(name, value):
            changed = set_option(Options(), name, value)
            names = [field for field in Options.__slots__
                     if getattr(changed, field) != getattr(Options(), field)]
            assert len(names) <= 1
            return Verdict(True, ("setoption", *names))
        case SetPosition(fen, moves):
            return _try_position(fen, moves)


def _try_position(fen: str | None, moves: tuple[str, ...]) -> Verdict:
    try:
        position = Position.after(GAME, fen, moves)
    except (PositionError, IllegalMoveError):
        assert (fen is not None and refuses(fen)) or _has_illegal(fen, moves)
        raise
    board = chess.Board() if fen is None else chess.Board(fen.strip())
    for move in moves:
        board.push_uci(move)
    assert position.board.fen() == board.fen()
    if position.is_searchable and board.halfmove_clock < 100:
        assert_same_position(position.root, board)
    return Verdict(True, ("position", fen is None, min(len(moves), 4), position.is_searchable))


def _has_illegal(fen: str | None, moves: tuple[str, ...]) -> bool:
    board = chess.Board() if fen is None else chess.Board(fen.strip())
    for move in moves:
        try:
            if not board.push_uci(move):
                return True
        except ValueError:
            return True
    return False


def try_opening(data: bytes) -> Verdict:
    """A row of the shipped book, the first one."""
    try:
        line = openings._parse(text_of(data), 0)
    except CorruptDataError:
        return REFUSED
    assert line.number == 0
    assert line.moves
    return ACCEPTED


def random_games(stream: random.Random, count: int, plies: int) -> list[chess.Board]:
    """Boards with their moves, of games of random moves."""
    boards = []
    for _ in range(count):
        board = chess.Board(stream.choice(FENS))
        while len(board.move_stack) < plies and (moves := list(board.legal_moves)):
            board.push(stream.choice(moves))
        boards.append(board)
    return boards


def _line_seeds() -> list[bytes]:
    lines = [
        "uci", "isready", "ucinewgame", "stop", "ponderhit", "quit", "debug on",
        "position startpos", "go wtime 1000 btime 1000 winc 10 binc 10 movestogo 3",
        "go nodes 5 depth 3 mate 1",
        "go searchmoves e2e4 d2d4 infinite", "go ponder movetime 50", "go",
        "setoption name MultiPV value 2", "setoption name Move Overhead value 1",
        "setoption name Temperature value 0.5", "setoption name UCI_ShowWDL value true",
        "setoption name Precision value int8", "setoption name Model value a b/c",
    ]
    for board in random_games(random.Random(1), 12, 9):
        moves = " ".join(move.uci() for move in board.move_stack)
        start = board.root()
        place = "startpos" if start.fen() == chess.STARTING_FEN else f"fen {start.fen()}"
        lines.append(f"position {place} moves {moves}")
    return [line.encode() for line in lines]


UCI_WORDS = (
    b"uci", b"isready", b"ucinewgame", b"stop", b"ponderhit", b"quit", b"debug", b"register",
    b"position", b"startpos", b"fen", b"moves", b"go", b"nodes", b"depth", b"mate", b"movetime",
    b"wtime", b"btime", b"winc", b"binc", b"movestogo", b"infinite", b"ponder", b"searchmoves",
    b"setoption", b"name", b"value", b"MultiPV", b"Temperature", b"UCI_ShowWDL", b"Simulations",
    b"Ticks", b"Precision", b"bf16", b"true", b"e2e4", b"e7e5", b"e1g1", b"e7e8q", b"a7a8k",
    b"0000", b"e2e2", b"z9z9", b"(none)", b"-1", b"0", b"1", b"3", b"99999999999999999999", b"1e9",
    b"NaN", *FEN_WORDS,
)

TARGETS = (
    Target(
        "fen", try_fen, one_of((5, octets(FEN_OCTETS)), (3, words(FEN_WORDS))),
        lambda: [fen.encode() for fen in FENS], weight=160,
    ),
    Target(
        "uci-line", try_line, one_of((3, words(UCI_WORDS)), (2, octets(UCI_WORDS))), _line_seeds,
        weight=160,
    ),
    Target(
        "opening", try_opening, one_of((1, octets()), (1, words(UCI_WORDS))),
        lambda: [str(line).encode() for line in openings.read_book()[:1]], weight=10,
    ),
)
