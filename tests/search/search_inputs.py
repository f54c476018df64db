"""Positions and an evaluator with strong opinions that cost nothing."""

import chess
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
        return Evaluation(logits, wdl[:, 0] - wdl[:, 2], wdl)


def _mix(words):
    words = (words + _GOLDEN) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(32))


def _unit(words):
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


class UninformedEvaluator:
    """Every action alike, every position even."""

    network_seconds = 0.0

    def evaluate(self, planes, legal_actions, num_legal):
        behind = np.arange(legal_actions.shape[1]) >= num_legal[:, None]
        logits = np.where(behind, -np.inf, 0.0).astype(np.float32)
        value, wdl = np.zeros(len(planes), np.float32), np.full((len(planes), 3), 1 / 3, np.float32)
        return Evaluation(logits, value, wdl)


def keys(count):
    return np.random.default_rng(count).integers(2**64, size=count, dtype=np.uint64)


def run(search, batch, temperature=1.0, ply=7, chosen_keys=None):
    count = len(batch)
    return search.run(
        batch, keys(count) if chosen_keys is None else chosen_keys,
        np.full(count, ply, np.int32), np.full(count, temperature, np.float32),
    )


def position(fen=chess.STARTING_FEN, moves=""):
    """One position of chess, after ``moves`` from ``fen``."""
    game = get_game("chess")
    batch = game.allocate(1)
    game.reset(batch, np.zeros(1, np.int64), game.parse_state(fen)[None])
    for move in moves.split():
        game.step(batch, np.array([game.parse_action(batch.state[0], move)], np.int16))
    return batch


def chess_positions(count, seed=0, most_plies=60):
    """Games of random moves, at different plies, none of them ended."""
    game = get_game("chess")
    rng = np.random.default_rng(seed)
    batch = game.allocate(count)
    for ply in range(most_plies):
        choice = batch.legal_actions[np.arange(count), rng.integers(np.maximum(batch.num_legal, 1))]
        game.step(batch, np.where(ply < np.arange(count) % most_plies, choice, -1).astype(np.int16))
    return batch.take(np.flatnonzero(batch.num_legal))
