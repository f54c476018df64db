"""Positions and an evaluator with strong opinions that cost nothing."""

import numpy as np

from chess_snn.games import get_game
from chess_snn.nets.evaluator import Evaluation

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NUM_SEEN = get_game("chess").spec.num_planes


class HashEvaluator:
    """A stand-in for an untrained network that is not near uniform: hashes of what it is given.

    It sees planes and legal actions only, one row at a time, as a network does that does not see
    what follows from the rules.
    """

    network_seconds = 0.0

    def __init__(self):
        self.positions = 0
        self.calls = []

    def evaluate(self, planes, legal_actions, num_legal):
        self.positions += len(planes)
        self.calls.append(len(planes))
        hashed = np.zeros(len(planes), np.uint64)
        for column in planes.T[:_NUM_SEEN]:
            hashed = _mix(hashed ^ column)
        behind = np.arange(legal_actions.shape[1]) >= num_legal[:, None]
        each = _mix(hashed[:, None] ^ np.where(behind, 0, legal_actions).astype(np.uint64))
        logits = np.where(behind, -np.inf, 3 * _unit(each)).astype(np.float32)
        win, loss = 0.5 * _unit(_mix(hashed)), 0.5 * _unit(_mix(hashed + np.uint64(1)))
        wdl = np.stack([win, 1 - win - loss, loss], axis=1).astype(np.float32)
        return Evaluation.of_wdl(logits, wdl)


def _mix(words):
    words = (words + _GOLDEN) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(32))


def _unit(words):
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


class UninformedEvaluator:
    """Every action alike, every position even."""

    network_seconds = 0.0
    reduced_rows = None

    def evaluate(self, planes, legal_actions, num_legal):
        behind = np.arange(legal_actions.shape[1]) >= num_legal[:, None]
        logits = np.where(behind, -np.inf, 0.0).astype(np.float32)
        return Evaluation.of_wdl(logits, np.full((len(planes), 3), 1 / 3, np.float32))


def chess_positions(count, seed=0, most_plies=60):
    """Games of random moves, at different plies, none of them ended."""
    game = get_game("chess")
    rng = np.random.default_rng(seed)
    batch = game.allocate(count)
    for ply in range(most_plies):
        choice = batch.legal_actions[np.arange(count), rng.integers(np.maximum(batch.num_legal, 1))]
        game.step(batch, np.where(ply < np.arange(count) % most_plies, choice, -1).astype(np.int16))
    return batch.take(np.flatnonzero(batch.num_legal))
