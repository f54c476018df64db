"""Positions that networks are measured on.

Dimensions: n positions, P bitplanes, M columns for legal actions.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from chess_snn.games import get_game
from chess_snn.games.starts import random_starts
from chess_snn.nets import Evaluation, Evaluator, expand_planes
from chess_snn.types import Int16Array, Int32Array, UInt64Array

_LONGEST_START: Final = 80


@dataclass(frozen=True, slots=True)
class Positions:
    """n positions of chess as evaluators take them."""

    planes: UInt64Array
    """uint64[n, P]."""
    legal_actions: Int16Array
    """int16[n, M]."""
    num_legal: Int32Array
    """int32[n]."""

    def __getitem__(self, rows: slice) -> "Positions":
        """Those of ``rows``."""
        return Positions(self.planes[rows], self.legal_actions[rows], self.num_legal[rows])

    def __len__(self) -> int:
        """Number of positions, n."""
        return len(self.planes)

    def ask(self, evaluator: Evaluator) -> Evaluation:
        """All of them evaluated in one call."""
        return evaluator.evaluate(self.planes, self.legal_actions, self.num_legal)

    def tensor(self) -> Tensor:
        """Planes float32[n, P, 8, 8]."""
        words_BP = torch.from_numpy(self.planes.view(np.int64))
        return expand_planes(words_BP, get_game("chess").spec.board_shape, torch.float32)


def random_positions(count: int) -> Positions:
    """``count`` positions of random games, from the first ply to the eightieth."""
    game = get_game("chess")
    plies = np.resize(np.arange(_LONGEST_START, dtype=np.int32), count)
    states = random_starts(game, np.arange(count, dtype=np.uint64), plies)
    return Positions(game.planes(states), *game.legal_actions(states))
