"""Repetitions are counted the same whether moves are played or looked at below a root.

The games shuffle a lot and go on beyond the length of the ring; python-chess counts along.
"""

import random

import chess
import chess_oracle as oracle
import numpy as np
import pytest
from game_contract import remembered, step_below_root

from chess_snn.games import get_game
from chess_snn.games.chess import from_board
from chess_snn.games.chess.layout import KEY, META, REPETITIONS_MASK, REPETITIONS_SHIFT

GAME = get_game("chess")
NUM_SEEDS = 12
NUM_PLIES = 300
MAX_DEPTH = 24
SHUFFLE_RATE = 0.6
LAST_SHUFFLED_CLOCK = 80


def repetitions(batch):
    return int(batch.state[0, META] >> REPETITIONS_SHIFT & REPETITIONS_MASK)


def ends_the_game(tracked, move):
    after = tracked.board.copy(stack=False)
    after.push(move)
    return oracle.termination(after, tracked.times_seen(after)) != "ongoing"


def shuffling_game(rng, num_plies):
    """(move, earlier occurrences of the position after it, its termination) of each ply.

    Mostly takes moves back, and resets the clock in time; the game ends with its last ply or not
    at all.
    """
    tracked = oracle.TrackedBoard(chess.STARTING_FEN)
    plies = []
    while len(plies) < num_plies and tracked.termination == "ongoing":
        board = tracked.board
        moves = list(board.legal_moves)
        rng.shuffle(moves)
        if board.halfmove_clock >= LAST_SHUFFLED_CLOCK:
            moves.sort(key=board.is_zeroing, reverse=True)
        elif len(plies) > 1 and rng.random() < SHUFFLE_RATE:
            last = board.move_stack[-2]
            back = chess.Move(last.to_square, last.from_square)
            moves.sort(key=lambda move: move != back)
        is_last = len(plies) == num_plies - 1
        move = next((m for m in moves if is_last or not ends_the_game(tracked, m)), moves[0])
        tracked.push(move)
        plies.append((move, tracked.earlier, tracked.termination))
    return plies


class Walk:
    """One game of the kernels, played along the moves of a shuffling game."""

    def __init__(self, plies):
        self.plies = plies
        self.batch = GAME.allocate(1)
        self.board = chess.Board()

    def action(self, ply):
        return np.array([oracle.action_of(self.plies[ply][0], self.board.turn)], dtype=np.int16)

    def advance(self):
        ply = len(self.board.move_stack)
        GAME.step(self.batch, self.action(ply))
        self.board.push(self.plies[ply][0])
        return self.batch


@pytest.fixture(scope="module")
def games():
    return [shuffling_game(random.Random(seed), NUM_PLIES) for seed in range(NUM_SEEDS)]


def test_the_games_repeat_and_come_round_the_ring(games):
    assert max(len(plies) for plies in games) > 2 * GAME.spec.history_length
    counts = [earlier for plies in games for _, earlier, _ in plies]
    late = [earlier for plies in games for _, earlier, _ in plies[GAME.spec.history_length :]]
    assert sum(earlier == 1 for earlier in counts) > 200
    assert sum(earlier == 1 for earlier in late) > 100
    assert any(earlier == 2 for earlier in counts)


def test_played_games_count_as_python_chess_does(games):
    for plies in games:
        walk = Walk(plies)
        for ply, (_, earlier, termination) in enumerate(plies):
            batch = walk.advance()
            assert batch.ply[0] == ply + 1
            assert remembered(GAME.spec, batch)[0] == batch.state[0, KEY]
            assert repetitions(batch) == earlier, walk.board.fen()
            assert GAME.spec.terminations[batch.termination[0]] == termination


def test_steps_below_a_root_count_as_python_chess_does(games):
    num_repeated = 0
    for seed, plies in enumerate(games):
        rng = random.Random(seed)
        walk = Walk(plies)
        next_root = rng.randrange(MAX_DEPTH)
        root, path = walk.batch.take(np.array([0])), []
        for ply, (_, earlier, termination) in enumerate(plies):
            below = step_below_root(GAME, root, path, walk.action(ply))
            played = walk.advance()
            assert repetitions(below) == earlier, walk.board.fen()
            assert GAME.spec.terminations[below.termination[0]] == termination
            for name in ("state", "history", "ply", "num_legal", "reward"):
                np.testing.assert_array_equal(getattr(below, name), getattr(played, name), name)
            num_repeated += earlier > 0 and len(path) > 0
            path.append(played.state.copy())
            if ply == next_root:
                root, path = played.take(np.array([0])), []
                next_root += rng.randint(1, MAX_DEPTH)
    assert num_repeated > 200


def test_a_position_recurs_after_almost_fifty_moves():
    """A king walks round three squares and the other round sixteen: 48 moves of each are new."""
    triangle = ("a1", "b1", "a2")
    ring = ("c4", "d4", "e4", "f4", "g4", "g5", "g6", "g7", "g8", "f8", "e8", "d8", "c8", "c7",
            "c6", "c5")
    batch = GAME.allocate(1)
    board = chess.Board("8/8/8/p7/P1k5/8/8/K7 w - - 0 1")
    GAME.reset(batch, np.array([0]), from_board(board)[None])
    root, path = batch.take(np.array([0])), []
    for ply in range(96):
        squares, move = (ring if ply % 2 else triangle), ply // 2
        uci = squares[move % len(squares)] + squares[(move + 1) % len(squares)]
        action = np.array([GAME.parse_action(batch.state[0], uci)], dtype=np.int16)
        below = step_below_root(GAME, root, path, action)
        GAME.step(batch, action)
        path.append(batch.state.copy())
        assert repetitions(batch) == repetitions(below) == (ply == 95), ply


def test_positions_before_the_reset_do_not_count():
    """The clock of a start position may reach back further than its game does."""
    batch = GAME.allocate(1)
    board = chess.Board("4k3/8/8/8/8/8/8/R3K3 w - - 40 60")
    GAME.reset(batch, np.array([0]), from_board(board)[None])
    batch.history[0, 1:] = batch.state[0, KEY]
    for uci in ("a1b1", "e8d8", "b1a1", "d8e8"):
        GAME.step(batch, np.array([GAME.parse_action(batch.state[0], uci)], dtype=np.int16))
    assert repetitions(batch) == 1
