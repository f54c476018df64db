"""From packed samples to tensors on the device: planes and targets are built here, once a step.

Dimensions: B positions, P planes, L columns for legal actions, K columns of the policy target.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from chess_snn.data import Samples
from chess_snn.games.base import Game
from chess_snn.nets import expand_planes
from chess_snn.training.losses import Targets


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """One batch on the device."""

    planes_BPHW: Tensor
    """float32 in {0, 1}, channels-last."""
    targets: Targets


def assemble(game: Game, samples: Samples, device: torch.device) -> TrainingBatch:
    """Expand ``samples`` to the planes and targets of one training step on ``device``."""
    legal_actions, num_legal = game.legal_actions(samples.states)
    # Columns behind the longest list carry nothing.
    legal_actions = legal_actions[:, : int(num_legal.max())]
    # -1 stands behind a target's entries; with weight 0 any action that can be gathered will do.
    target_actions = np.maximum(samples.target_actions, 0)

    words = torch.from_numpy(game.planes(samples.states).view(np.int64)).to(device)
    return TrainingBatch(
        planes_BPHW=expand_planes(words, game.spec.board_shape, torch.float32),
        targets=Targets(
            legal_actions_BL=_tensor(legal_actions.astype(np.int64), device),
            num_legal_B=_tensor(num_legal.astype(np.int64), device),
            target_actions_BK=_tensor(target_actions.astype(np.int64), device),
            target_weights_BK=_tensor(samples.target_weights, device),
            outcomes_stm_B=_tensor(samples.outcomes_stm, device),
        ),
    )


def _tensor(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
