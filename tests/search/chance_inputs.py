"""Evaluators of returns, and positions of a 2048 so small that it is solved."""

import numpy as np
from search_inputs import HashEvaluator

from chess_snn.nets.evaluator import Evaluation


class HashReturns(HashEvaluator):
    """Strong opinions from hashes, and values in [1, 3]."""

    def __init__(self):
        super().__init__()
        self.questions = []
        """(afterstate, number of legal actions) of each row it was asked about."""

    def evaluate(self, planes, legal_actions, num_legal):
        self.questions += zip(planes[:, -1] > 0, num_legal.tolist(), strict=True)
        answer = super().evaluate(planes, legal_actions, num_legal)
        return returns(answer.legal_logits, 2 + 2 * answer.value_stm)


class SolvedReturns(HashEvaluator):
    """Every action alike; the exact values of a ``Tiny2048`` with noise from hashes, or nothing."""

    def __init__(self, game, noise):
        super().__init__()
        self._game, self._noise = game, noise

    def evaluate(self, planes, legal_actions, num_legal):
        answer = super().evaluate(planes, legal_actions, num_legal)
        values = np.zeros(len(planes), np.float32)
        if self._noise is not None:
            values = np.array(list(map(self._exact, self._game.positions(planes))), np.float32)
            values += 2 * self._noise * answer.value_stm
        uniform = np.where(np.isinf(answer.legal_logits), -np.inf, 0).astype(np.float32)
        return returns(uniform, values)

    def _exact(self, position):
        board, is_afterstate = position
        return self._game.afterstate_value(board) if is_afterstate else self._game.value(board)


def returns(legal_logits, values):
    return Evaluation(
        legal_logits, values.astype(np.float32), np.empty((len(values), 0), np.float32)
    )


def random_boards(game, count, seed=0):
    """Different boards of a ``Tiny2048`` from random play, each with two actions or more."""
    rng, found = np.random.default_rng(seed), {}
    while len(found) < count:
        board = game.board(game.initial_states([rng.integers(2**32)])[0, 0])
        while moves := game.moves(board):
            if len(moves) > 1:
                found[board] = None
            moved, _ = game.slide(board, int(rng.choice(moves)))
            events, shares = zip(*game.events(moved), strict=True)
            board = game.spawn(moved, int(rng.choice(events, p=shares)))
    return list(found)[:count]
