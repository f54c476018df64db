"""A search without a network: uniformly random play, positions valued by their material."""

import numpy as np

from chess_snn.games.starts import random_legal_actions
from chess_snn.search import SearchResult

PAWNS_FOR_CERTAINTY = 10


class MaterialSearch:
    """Half of its policy target is the action it drew, the other half is uniform."""

    network_seconds = 0.0

    def __init__(self, game):
        self._game = game

    @property
    def evaluator(self):
        return self

    def run(self, batch, keys, plies, temperatures):
        actions = random_legal_actions(batch, keys, plies)
        is_legal = np.arange(batch.legal_actions.shape[1]) < batch.num_legal[:, None]
        uniform = is_legal / batch.num_legal[:, None]
        is_drawn = is_legal & (batch.legal_actions == actions[:, None])
        target = 0.5 * uniform + 0.5 * is_drawn
        ratio = np.divide(target, uniform, where=is_legal, out=np.ones_like(target))
        surprises = (target * np.log(ratio)).sum(axis=1)
        values = self._game.heuristic_stm(batch.state) / PAWNS_FOR_CERTAINTY
        return SearchResult(
            actions=actions,
            values_stm=np.clip(values, -1, 1).astype(np.float32),
            policy_targets=target.astype(np.float32),
            prior_entropies=np.log(batch.num_legal).astype(np.float32),
            surprises=surprises.astype(np.float32),
        )
