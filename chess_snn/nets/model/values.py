"""Meaning of the outputs of a value head, by the kind of value that a game has.

- Win, draw and loss: three logits.
- A return: logits of ``NUM_BINS`` returns between 0 and the game's ``value_limit``, closest
  together near 0. A value is taught as the two bins around it (*two-hot*), with weights that keep
  its mean; it is read as the mean of the bins (Farebrother et al., arXiv 2403.03950, section 3.1).

Dimensions: B batch, V outputs of a value head, K bins, X the three of WDL, or none.
"""

from __future__ import annotations

from typing import Final

from chess_snn.games.base import GameSpec, ValueKind
from chess_snn.later import torch

NUM_BINS: Final = 128
"""K."""
_PRIOR_EXPONENT: Final = 2.5
"""A new network gives bin k a probability proportional to (k + 1) to the power of minus this. Its
first values are about a thousandth of the limit, and yet no bin is out of reach."""


def num_value_outputs(spec: GameSpec) -> int:
    """V: 3 for win, draw and loss, ``NUM_BINS`` for a return."""
    return 3 if spec.value_kind is ValueKind.WDL else NUM_BINS


def num_wdl(spec: GameSpec) -> int:
    """X: columns for probabilities of win, draw and loss; 0 in a game without them."""
    return 3 if spec.value_kind is ValueKind.WDL else 0


def first_value_bias(spec: GameSpec) -> torch.Tensor:
    """float32[V]: the bias of the readout of a new network."""
    if spec.value_kind is ValueKind.WDL:
        return torch.zeros(3)
    return -_PRIOR_EXPONENT * torch.arange(1, NUM_BINS + 1, dtype=torch.float32).log()


def read_value(spec: GameSpec, value_logits_BV: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities float32[B, X] of win, draw and loss, and the value float32[B].

    The value is win minus loss in [-1, 1], or the expected return in [0, ``value_limit``]. A game
    without win and loss has no columns of probabilities.
    """
    share_BV = value_logits_BV.softmax(dim=1)
    if spec.value_kind is ValueKind.WDL:
        return share_BV, share_BV[:, 0] - share_BV[:, 2]
    bins_K = return_bins(spec, value_logits_BV.device)
    return share_BV[:, :0], (share_BV * bins_K).sum(dim=1)


def value_target(spec: GameSpec, values_B: torch.Tensor) -> torch.Tensor:
    """float32[B, V]: the probabilities that a value head should give ``values_B``; rows sum to 1.

    Win minus loss is the value, without win *and* loss at once; or the return is the mean of the
    two bins around it. A return outside of [0, ``value_limit``] becomes the nearer end.
    """
    if spec.value_kind is ValueKind.WDL:
        win_B, loss_B = values_B.clamp_min(0), (-values_B).clamp_min(0)
        return torch.stack([win_B, 1 - win_B - loss_B, loss_B], dim=1)
    return _two_hot(return_bins(spec, values_B.device), values_B.clamp(0, spec.value_limit))


def return_bins(spec: GameSpec, device: torch.device | str = "cpu") -> torch.Tensor:
    """float32[K]: x_k = value_limit * (k / (K - 1))^2, rising from 0."""
    # Made on the device: a captured graph may not copy from ordinary memory.
    steps_K = torch.arange(NUM_BINS, dtype=torch.float32, device=device) / (NUM_BINS - 1)
    return spec.value_limit * steps_K.square()


def _two_hot(bins_K: torch.Tensor, values_B: torch.Tensor) -> torch.Tensor:
    """Weights float32[B, K] of the two bins around each value, whose mean it is."""
    below_B = (torch.bucketize(values_B, bins_K, right=True) - 1).clamp(0, NUM_BINS - 2)
    low_B, high_B = bins_K[below_B], bins_K[below_B + 1]
    upper_B = (values_B - low_B) / (high_B - low_B)
    weights_BK = values_B.new_zeros(len(values_B), NUM_BINS)
    weights_BK.scatter_(1, below_B.unsqueeze(1), (1 - upper_B).unsqueeze(1))
    return weights_BK.scatter_(1, below_B.unsqueeze(1) + 1, upper_B.unsqueeze(1))
