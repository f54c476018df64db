"""Numbers of moves, how and when games end, and what a reset keeps."""

import itertools
import random
from collections import Counter

import chess
import chess_oracle as oracle
import numpy as np
import pytest

from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.games.chess import from_board, perft
from chess_snn.games.chess.layout import KEY, META, REPETITIONS_MASK, REPETITIONS_SHIFT

GAME = get_game("chess")
KNIGHTS_OUT_AND_BACK = ("g1f3", "g8f6", "f3g1", "f6g8")


def at(fen):
    batch = GAME.allocate(1)
    GAME.reset(batch, np.array([0]), GAME.parse_state(fen)[None])
    return batch


def play(batch, *moves):
    for uci in moves:
        action = GAME.parse_action(batch.state[0], uci)
        GAME.step(batch, np.array([action], dtype=np.int16))
    return batch


def ending(batch):
    return GAME.spec.terminations[batch.termination[0]]


def repetitions(batch):
    return int(batch.state[0, META] >> REPETITIONS_SHIFT & REPETITIONS_MASK)


def test_mate_rewards_the_mover():
    batch = play(at(chess.STARTING_FEN), "f2f3", "e7e5", "g2g4")
    assert (ending(batch), batch.reward[0]) == ("ongoing", 0)
    play(batch, "d8h4")
    assert (ending(batch), batch.reward[0], batch.num_legal[0]) == ("checkmate", 1, 0)


def test_stalemate_rewards_nobody():
    batch = play(at("7k/8/5KQ1/8/8/8/8/8 b - - 0 1"))
    assert ending(batch) == "stalemate"
    batch = play(at("7k/8/5K2/6Q1/8/8/8/8 w - - 0 1"), "g5g6")
    assert (ending(batch), batch.reward[0], batch.num_legal[0]) == ("stalemate", 0, 0)


def test_third_occurrence_ends_the_game():
    batch = at(chess.STARTING_FEN)
    play(batch, *KNIGHTS_OUT_AND_BACK)
    assert (ending(batch), repetitions(batch)) == ("ongoing", 1)
    play(batch, *KNIGHTS_OUT_AND_BACK)
    assert (ending(batch), repetitions(batch)) == ("threefold_repetition", 2)
    assert batch.num_legal[0] == 0


def test_lost_castling_right_makes_another_position():
    batch = at("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1")
    play(batch, "a1b1", "a8b8", "b1a1", "b8a8")
    assert repetitions(batch) == 0
    play(batch, "a1b1", "a8b8", "b1a1", "b8a8")
    assert repetitions(batch) == 1


def test_lost_en_passant_makes_another_position():
    batch = at("4k3/8/8/8/4p3/8/3P4/4K3 w - - 0 1")
    play(batch, "d2d4")
    assert GAME.format_state(batch.state[0]).split()[3] == "d3"
    play(batch, "e8e7", "e1e2", "e7e8", "e2e1")
    assert repetitions(batch) == 0


def test_pinned_en_passant_is_the_same_position():
    """The capture is illegal, so the position after it could have been made is no different."""
    batch = at("8/8/8/8/k3p2Q/8/3P4/4K3 w - - 0 1")
    play(batch, "d2d4")
    assert GAME.format_state(batch.state[0]).split()[3] == "-"
    play(batch, "a4b4", "e1e2", "b4a4", "e2e1")
    assert repetitions(batch) == 1


def test_fifty_moves_end_the_game_at_clock_100():
    batch = play(at("4k3/8/8/8/8/8/8/R3K3 w - - 98 80"), "a1a2")
    assert ending(batch) == "ongoing"
    assert (ending(play(batch, "e8e7")), batch.num_legal[0]) == ("fifty_moves", 0)


def test_mate_on_the_hundredth_ply_is_mate():
    batch = play(at("4k3/8/4K3/8/8/8/8/R7 w - - 99 80"), "a1a8")
    assert (ending(batch), batch.reward[0]) == ("checkmate", 1)


def test_capture_on_the_hundredth_ply_goes_on():
    batch = play(at("4k3/8/8/8/8/8/r7/R3K3 w - - 99 80"), "a1a2")
    assert ending(batch) == "ongoing"
    assert GAME.format_state(batch.state[0]).split()[4] == "0"


@pytest.mark.parametrize("clock", [100, 127, 128, 150, 255])
def test_reset_beyond_fifty_moves_is_over(clock):
    batch = at(f"4k3/8/8/8/8/8/8/R3K3 w - - {clock} 200")
    assert (ending(batch), batch.num_legal[0], batch.reward[0]) == ("fifty_moves", 0, 0)
    assert GAME.format_state(batch.state[0]).split()[4] == str(clock)


@pytest.mark.parametrize("black_from", [chess.A7, chess.B7])
@pytest.mark.parametrize("step", [1, 2])
def test_insufficient_material_equals_python_chess(black_from, step):
    """A step of 2 keeps an army on one shade; ``black_from`` chooses which black's is."""
    seen = set()
    materials = ("", "N", "B", "NN", "BN", "BB", "R", "Q", "P")
    for white, black in itertools.product(materials, repeat=2):
        board = chess.Board(None)
        armies = (("K", chess.H4), ("k", chess.H6), (white, chess.A2), (black.lower(), black_from))
        for army, first in armies:
            for i, symbol in enumerate(army):
                board.set_piece_at(first + i * step, chess.Piece.from_symbol(symbol))
        assert ending(at(board.fen())) == oracle.termination(board), board.fen()
        seen.add(ending(at(board.fen())))
    assert seen == {"ongoing", "insufficient_material"}


@pytest.mark.parametrize("fen", oracle.ODD_POSITIONS)
def test_legal_lists_pay_no_heed_to_draws(fen):
    board = chess.Board(fen)
    board.halfmove_clock = 130
    actions, counts = GAME.legal_actions(GAME.parse_state(board.fen())[None])
    assert set(actions[0, : counts[0]].tolist()) == set(oracle.legal_actions(board))


def test_reset_forgets_repetitions():
    batch = play(at(chess.STARTING_FEN), *KNIGHTS_OUT_AND_BACK)
    state = batch.state[0].copy()
    assert repetitions(batch) == 1
    GAME.reset(batch, np.array([0]), state[None])
    assert repetitions(batch) == 0
    assert batch.ply[0] == 0
    assert batch.history[0, 0] == state[KEY]
    assert np.count_nonzero(batch.history[0]) == 1
    play(batch, *KNIGHTS_OUT_AND_BACK)
    assert repetitions(batch) == 1


# Published leaf counts (chessprogramming.org, Perft Results) and python-chess's divide.


KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"

PUBLISHED = {
    chess.STARTING_FEN: (20, 400, 8_902, 197_281, 4_865_609),
    KIWIPETE: (48, 2_039, 97_862, 4_085_603),
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1": (14, 191, 2_812, 43_238),
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1": (6, 264, 9_467, 422_333),
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8": (44, 1_486, 62_379, 2_103_487),
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10": (
        46, 2_079, 89_890, 3_894_594,
    ),
}  # fmt: skip


@pytest.mark.parametrize("fen", PUBLISHED)
def test_published_counts(fen):
    state = GAME.parse_state(fen)
    counts = tuple(perft(state, depth) for depth in range(1, len(PUBLISHED[fen]) + 1))
    assert counts == PUBLISHED[fen]


@pytest.mark.parametrize(("fen", "depth", "count"), [
    (KIWIPETE, 0, 1),
    ("rnb1kbnr/pppp1ppp/8/4p3/5PPq/8/PPPPP2P/RNBQKBNR w KQkq - 1 3", 3, 0),  # mated
    ("8/8/8/8/3k4/8/8/K7 w - - 120 90", 1, 3),  # a draw by the rules, and a position to perft
])
def test_counts_at_the_edges(fen, depth, count):
    assert perft(GAME.parse_state(fen), depth) == count


def test_depth_out_of_range():
    with pytest.raises(ConfigError, match="depth"):
        perft(GAME.parse_state(KIWIPETE), -1)


# The kernels and python-chess play the same games side by side and must agree at every ply.


NUM_GAMES = 64
NUM_PLIES = 130  # 8,320 positions
MAX_GAME_PLIES = 120
SHUFFLE_RATE = 0.85


class Lockstep:
    """A batch of games, the boards that mirror it, and what was met on the way."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.batch = GAME.allocate(NUM_GAMES)
        self.boards = [None] * NUM_GAMES
        self.ends = Counter()
        self.num_positions = 0
        self.num_repeated = 0
        self.key_of, self.position_of = {}, {}
        self.restart(range(NUM_GAMES))

    def restart(self, rows):
        for row in rows:
            fen = self.rng.choice((chess.STARTING_FEN, *oracle.ODD_POSITIONS))
            self.boards[row] = oracle.TrackedBoard(fen)
            state = from_board(self.boards[row].board)
            GAME.reset(self.batch, np.array([row]), state[None])

    def choose(self, row):
        """Uniformly random; every third game mostly takes its last move back, to repeat itself."""
        board = self.boards[row].board
        moves = list(board.legal_moves)
        if row % 3 == 0 and len(board.move_stack) > 1 and self.rng.random() < SHUFFLE_RATE:
            last = board.move_stack[-2]
            back = chess.Move(last.to_square, last.from_square)
            if back in moves:
                return back
        if row % 3 == 1 and self.rng.random() < SHUFFLE_RATE:  # keeps the clock running
            return self.rng.choice([m for m in moves if not board.is_zeroing(m)] or moves)
        return self.rng.choice(moves)

    def play(self, num_plies):
        for _ in range(num_plies):
            self.check()
            ended = [
                row
                for row, tracked in enumerate(self.boards)
                if self.batch.termination[row]
                or len(tracked.board.move_stack) >= MAX_GAME_PLIES
            ]
            self.ends.update(GAME.spec.terminations[code] for code in self.batch.termination[ended])
            self.restart(ended)
            actions = np.full(NUM_GAMES, -1, dtype=np.int16)
            for row, tracked in enumerate(self.boards):
                if not self.batch.termination[row]:
                    move = self.choose(row)
                    actions[row] = oracle.action_of(move, tracked.board.turn)
                    tracked.push(move)
            GAME.step(self.batch, actions)

    def check(self):
        planes = oracle.expand(GAME.planes(self.batch.state))
        for row, tracked in enumerate(self.boards):
            self.check_rules(row, tracked)
            self.check_key(row, tracked)
            expected = oracle.planes(tracked.board, tracked.earlier)
            assert np.array_equal(planes[row], expected), tracked.board.fen()
            self.num_positions += 1

    def check_rules(self, row, tracked):
        board, batch = tracked.board, self.batch
        fen = board.fen()
        assert GAME.format_state(batch.state[row]) == fen
        assert GAME.spec.terminations[batch.termination[row]] == tracked.termination, fen
        listed = batch.legal_actions[row, : batch.num_legal[row]].tolist()
        moves = oracle.legal_actions(board) if tracked.termination == "ongoing" else {}
        assert len(set(listed)) == len(listed), fen
        assert set(listed) == set(moves), fen
        if listed:
            action = self.rng.choice(listed)
            uci = moves[action].uci()
            assert GAME.format_action(batch.state[row], action) == uci, fen
            assert GAME.parse_action(batch.state[row], uci) == action, fen

    def check_key(self, row, tracked):
        state = self.batch.state[row]
        key = int(state[KEY])
        assert key == oracle.zobrist_key(tracked.board)
        assert self.key_of.setdefault(tracked.key, key) == key
        assert self.position_of.setdefault(key, tracked.key) == tracked.key
        repetitions = int(state[META] >> REPETITIONS_SHIFT & REPETITIONS_MASK)
        assert repetitions == tracked.earlier, tracked.board.fen()
        self.num_repeated += repetitions > 0


@pytest.fixture(scope="module")
def played():
    lockstep = Lockstep(seed=20)
    lockstep.play(NUM_PLIES)
    return lockstep


def test_agrees_at_every_ply(played):
    assert played.num_positions >= 8_000


def test_met_every_way_to_end(played):
    missing = set(GAME.spec.terminations[1:]) - set(played.ends)
    assert not missing, f"the fuzz never saw {missing}: {played.ends}"
    assert min(played.ends[name] for name in GAME.spec.terminations[1:]) >= 2, played.ends


def test_met_repetitions_and_transpositions(played):
    assert played.num_repeated > 200
    assert len(played.key_of) < played.num_positions


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_agrees_over_many_more_games(seed):
    lockstep = Lockstep(seed)
    lockstep.play(990)
    assert lockstep.num_positions >= 60_000
