"""From packed samples to tensors on the device: planes and targets are built here, once a step.

Dimensions: B positions, P planes, L columns for legal actions, K columns of the policy target.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from chess_snn.data import Samples
from chess_snn.errors import CorruptDataError
from chess_snn.games.base import ONGOING, Game
from chess_snn.jit import kernel
from chess_snn.nets import expand_planes
from chess_snn.training.losses import Targets
from chess_snn.types import BoolArray, Float32Array, Int16Array, Int32Array


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """One batch on the device."""

    planes_BPHW: Tensor
    """float32 in {0, 1}, channels-last."""
    targets: Targets


def assemble(game: Game, samples: Samples, device: torch.device) -> TrainingBatch:
    """Expand ``samples`` to the planes and targets of one training step on ``device``.

    Raises:
        CorruptDataError: a policy target names an action that is not legal.
    """
    legal_actions, num_legal = game.legal_actions(samples.states)
    # Columns behind the longest list carry nothing.
    legal_actions = legal_actions[:, : int(num_legal.max())]
    policy = _over_legal_actions(game, samples, legal_actions, num_legal)
    ended = samples.terminations != ONGOING

    words = torch.from_numpy(game.planes(samples.states).view(np.int64)).to(device)
    return TrainingBatch(
        planes_BPHW=expand_planes(words, game.spec.board_shape, torch.float32),
        targets=Targets(
            legal_actions_BL=_tensor(legal_actions.astype(np.int64), device),
            num_legal_B=_tensor(num_legal.astype(np.int64), device),
            policy_BL=_tensor(policy, device),
            outcomes_stm_B=_tensor(samples.outcomes_stm, device),
            results_stm_B=_tensor(samples.results_stm, device),
            root_values_stm_B=_tensor(samples.values_stm, device),
            log_plies_left_B=_tensor(np.log1p(samples.plies_left, dtype=np.float32), device),
            ended_B=_tensor(ended.astype(np.float32), device),
        ),
    )


def mirror(game: Game, samples: Samples, is_mirrored: BoolArray) -> Samples:
    """``samples`` with those of ``is_mirrored`` bool[B] seen in a mirror, where the rules allow it.

    What was said of a position is as true of its mirror image.
    """
    states = samples.states.copy()
    actions = np.column_stack([samples.actions, samples.target_actions])
    states[is_mirrored], actions[is_mirrored] = game.mirror(
        states[is_mirrored], actions[is_mirrored]
    )
    return replace(samples, states=states, actions=actions[:, 0], target_actions=actions[:, 1:])


def _over_legal_actions(
    game: Game, samples: Samples, legal_actions: Int16Array, num_legal: Int32Array
) -> Float32Array:
    """The policy target as weights float32[B, L] of the listed legal actions."""
    policy = np.zeros(legal_actions.shape, np.float32)
    bad = _spread_targets(
        samples.target_actions, samples.target_weights, legal_actions, num_legal, policy
    )
    if bad >= 0:
        state = np.zeros(game.spec.state_words, np.uint64)
        state[: game.spec.record_words] = samples.states[bad]
        raise CorruptDataError(
            f"a policy target names an action that is not legal in {game.format_state(state)}; "
            "the games were written by other rules: play them again"
        )
    return policy


@kernel
def _spread_targets(
    target_actions: Int16Array, target_weights: Float32Array, legal_actions: Int16Array,
    num_legal: Int32Array, policy: Float32Array,
) -> int:
    """Fill ``policy`` [B, L]; the first row whose target is not among its legal actions, or -1."""
    for b in range(len(policy)):
        for k in range(target_actions.shape[1]):
            action = target_actions[b, k]
            if action < 0:
                break
            for j in range(num_legal[b]):
                if legal_actions[b, j] == action:
                    policy[b, j] += target_weights[b, k]
                    break
            else:
                return b
    return -1


def _tensor(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
