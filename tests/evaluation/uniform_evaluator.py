"""A network without opinions: every action equally likely, every position even."""

import numpy as np

from chess_snn.nets.evaluator import Evaluation


class UniformEvaluator:
    network_seconds = 0.0

    def evaluate(self, planes, legal_actions, num_legal):
        listed = np.arange(legal_actions.shape[1]) < num_legal[:, None]
        logits = np.where(listed, 0.0, -np.inf).astype(np.float32)
        value, wdl = np.zeros(len(planes), np.float32), np.full((len(planes), 3), 1 / 3, np.float32)
        return Evaluation(logits, value, wdl)
