"""Answers of python-chess, in the library's terms.

It is code that shares nothing with the library but the random words that keys are made of.
"""

from collections import Counter

import chess
import numpy as np

from chess_snn.games.chess import tables

CASTLING_ROOKS = (chess.H1, chess.A1, chess.H8, chess.A8)
CLOCK_THRESHOLDS = (4, 8, 16, 32, 48, 64, 80, 96)
COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
KNIGHT_DIRECTIONS = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]

ODD_POSITIONS = (
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
    "8/PPPPkppp/8/8/8/8/pppK4/8 w - - 0 1",
    "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    "r3k2r/8/8/3pP3/8/8/8/R3K2R w KQkq d6 0 1",
    "4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1",
    "r3k2r/8/8/8/8/8/7R/4K3 b kq - 3 20",
    "8/8/8/1k1pP2R/8/8/6K1/8 w - d6 0 1",  # the capture would uncover nothing
    "8/8/8/K2pP2r/8/8/6k1/8 w - d6 0 1",  # two pawns leave the rank at once
    "4k3/8/8/8/2pP4/8/8/4K2B b - d3 0 1",
    "8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1",
    "8/5k2/8/2Pp4/2B5/1K6/8/8 w - d6 0 1",
    "8/8/1k6/8/2pP4/8/5BK1/8 b - d3 0 1",  # the pushed pawn uncovers a check
    "2b1k3/8/8/8/8/8/8/2B1K3 w - - 0 1",
    "2b1k3/8/8/8/8/8/8/3BK3 w - - 0 1",
    "8/8/4k3/8/8/3QK3/8/8 w - - 0 1",
    "8/8/4k3/8/8/3RK3/8/7r w - - 92 90",
    "4k3/4p3/8/8/8/8/4P3/R3K3 w Q - 96 150",
    "1nbqkbn1/8/8/8/8/8/8/1NBQKBN1 w - - 0 1",
    "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1",  # 218 legal moves
    "rnb1kbnr/pppp1ppp/8/4p3/5PPq/8/PPPPP2P/RNBQKBNR w KQkq - 1 3",  # mated
    "5bnr/4p1pq/4Qpkr/7p/7P/4P3/PPPP1PP1/RNB1KBNR b KQ - 2 10",  # stalemated
    "3k4/3R4/8/3r4/8/8/3Q4/3K4 b - - 0 1",
    "k7/8/8/3b4/8/8/6P1/5R1K w - - 0 1",
    "4r2k/8/8/8/1b6/2N5/3PB3/r2QK3 w - - 0 1",  # pins on four lines
    "6k1/8/8/8/8/5n2/8/4K2r w - - 0 1",  # double check
)


def action_of(move, turn):
    """8 x 8 x 73 from the geometry of the move alone."""
    sign = 1 if turn == chess.WHITE else -1
    files = chess.square_file(move.to_square) - chess.square_file(move.from_square)
    ranks = sign * (chess.square_rank(move.to_square) - chess.square_rank(move.from_square))
    origin = move.from_square if turn == chess.WHITE else chess.square_mirror(move.from_square)
    if move.promotion and move.promotion != chess.QUEEN:
        plane = 64 + 3 * "NBR".index(chess.piece_symbol(move.promotion).upper()) + files + 1
    elif 0 in (files, ranks) or abs(files) == abs(ranks):
        north_south = "N" if ranks > 0 else "S" if ranks < 0 else ""
        east_west = "E" if files > 0 else "W" if files < 0 else ""
        distance = max(abs(files), abs(ranks))
        plane = 7 * COMPASS.index(north_south + east_west) + distance - 1
    else:
        plane = 56 + KNIGHT_DIRECTIONS.index((files, ranks))
    return 73 * origin + plane


def legal_actions(board):
    """Action -> move for every legal move."""
    return {action_of(move, board.turn): move for move in board.legal_moves}


def termination(board, earlier=0):
    """Name of the termination, given how often the position occurred earlier in the game."""
    has_moves = any(board.legal_moves)
    if board.is_check() and not has_moves:
        return "checkmate"
    if board.is_insufficient_material():
        return "insufficient_material"
    if not has_moves:
        return "stalemate"
    if board.halfmove_clock >= 100:
        return "fifty_moves"
    return "threefold_repetition" if earlier >= 2 else "ongoing"


def zobrist_key(board):
    """The key as the words of :mod:`chess_snn.games.chess.tables`, over each other."""
    key = tables.ZOBRIST_BLACK if board.turn == chess.BLACK else np.uint64(0)
    for square, piece in board.piece_map().items():
        key ^= tables.ZOBRIST_PIECE[int(piece.color == chess.BLACK), piece.piece_type, square]
    rights = [board.castling_rights & chess.BB_SQUARES[rook] for rook in CASTLING_ROOKS]
    key ^= tables.ZOBRIST_CASTLING[sum(bool(right) << bit for bit, right in enumerate(rights))]
    if board.has_legal_en_passant():
        key ^= tables.ZOBRIST_EP_FILE[chess.square_file(board.ep_square)]
    return key


def planes(board, earlier=0):
    """bool[48, 8, 8] by rank and file, side to move's view; black's view is the mirrored board."""
    view = board if board.turn == chess.WHITE else board.mirror()
    stack = np.zeros((48, 8, 8), dtype=bool)
    for square, piece in view.piece_map().items():
        plane = piece.piece_type - 1 + (0 if piece.color == chess.WHITE else 6)
        stack[plane, square // 8, square % 8] = True
    rights = view.fen().split()[2]
    for plane, symbol in enumerate("KQkq", start=12):
        stack[plane] = symbol in rights
    if view.has_legal_en_passant():
        stack[16, view.ep_square // 8, view.ep_square % 8] = True
    for plane, threshold in enumerate(CLOCK_THRESHOLDS, start=17):
        stack[plane] = board.halfmove_clock >= threshold
    stack[25], stack[26], stack[27] = earlier >= 1, earlier >= 2, True
    stack[28:38] = expand(np.array(rule_planes(view, chess.WHITE), np.uint64))
    stack[38:48] = expand(np.array(rule_planes(view, chess.BLACK), np.uint64))
    return stack


def rule_planes(view, color):
    """Squares that each kind of piece attacks, that two pieces attack, and that see the king."""
    by_kind = [
        sum({int(chess.BB_SQUARES[target]) for square in view.pieces(kind, color)
             for target in view.attacks(square)})
        for kind in chess.PIECE_TYPES
    ]
    twice = [square for square in chess.SQUARES if len(view.attackers(color, square)) > 1]
    king = view.king(color)
    seeing = []
    for kind in (chess.KNIGHT, chess.BISHOP, chess.ROOK):
        other = view.copy()
        other.set_piece_at(king, chess.Piece(kind, color))
        seeing.append(int(other.attacks(king)))
    return [*by_kind, int(chess.SquareSet(twice)), *seeing]


def expand(words):
    """uint64[..., P] -> bool[..., P, 8, 8]."""
    bits = np.asarray(words)[..., None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    return bits.astype(bool).reshape(*np.shape(words), 8, 8)


class TrackedBoard:
    """A board that counts its positions without python-chess's walk back through the moves."""

    def __init__(self, fen):
        self.board = chess.Board(fen)
        self._seen = Counter()
        self._enter()

    def push(self, move):
        self.board.push(move)
        self._enter()

    def _enter(self):
        self.key = self.board._transposition_key()
        self.earlier = self._seen[self.key]
        self._seen[self.key] += 1

    def times_seen(self, board):
        """How often the position of ``board`` has occurred in this game."""
        return self._seen[board._transposition_key()]

    @property
    def termination(self):
        return termination(self.board, self.earlier)


def random_boards(rng, count, max_plies=60):
    """Boards a random number of random plies from a random start."""
    for _ in range(count):
        board = chess.Board(rng.choice((chess.STARTING_FEN, *ODD_POSITIONS)))
        for _ in range(rng.randrange(max_plies)):
            moves = list(board.legal_moves)
            if not moves:
                break
            board.push(rng.choice(moves))
        yield board
