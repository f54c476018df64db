"""The kernels and python-chess play the same games side by side and must agree at every ply."""

import random
from collections import Counter

import chess
import chess_oracle as oracle
import numpy as np
import pytest

from chess_snn.games import get_game
from chess_snn.games.chess import from_board
from chess_snn.games.chess.layout import KEY, META, REPETITIONS_MASK, REPETITIONS_SHIFT

GAME = get_game("chess")
NUM_GAMES = 64
NUM_PLIES = 330  # 21,120 positions
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
    assert played.num_positions >= 20_000


def test_met_every_way_to_end(played):
    missing = set(GAME.spec.terminations[1:]) - set(played.ends)
    assert not missing, f"the fuzz never saw {missing}: {played.ends}"
    assert min(played.ends[name] for name in GAME.spec.terminations[1:]) >= 5, played.ends


def test_met_repetitions_and_transpositions(played):
    assert played.num_repeated > 500
    assert len(played.key_of) < played.num_positions


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_agrees_over_many_more_games(seed):
    lockstep = Lockstep(seed)
    lockstep.play(3 * NUM_PLIES)
    assert lockstep.num_positions >= 60_000
