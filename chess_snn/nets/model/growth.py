"""Growth of a network: more channels and blocks, with the answers that it had.

A further channel is a copy of one that is there. Layers that read both divide its weight between
them at random, so that the copies learn different things; their sum is what it was, but for
rounding. A further block adds nothing at first: its last normalisation has weight 0.

Net2Net, Chen et al., arXiv 1511.05641, sections 2.2 and 2.3.

Dimensions: C channels before, W channels wanted, O outputs, X anything.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from chess_snn.rng import generator

_LEAST_PART, _LARGEST_PART = 0.5, 1.5
"""Bounds of what a copy gets, before the parts of all copies are made 1."""


def grown_weights(
    weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor], channels: tuple[int, int],
    seed: int,
) -> dict[str, Tensor]:
    """The weights of a larger network that answers as the smaller one with ``weights`` does.

    Args:
        weights: of the smaller one, by name.
        wanted: of the larger one, new. Of blocks that are added they stay, but for what adds them
            to the shortcut.
        channels: of the smaller and the larger one.
        seed: of how copies divide a weight.
    """
    rng = generator(seed, "growth")
    grown = {}
    for name, new in wanted.items():
        if name in weights:
            grown[name] = _widened(weights[name], new.shape, channels, rng)
        else:
            grown[name] = torch.zeros_like(new) if name.endswith("conv2.norm.weight") else new
    return grown


def _widened(
    old: Tensor, shape: torch.Size, channels: tuple[int, int], rng: np.random.Generator
) -> Tensor:
    """``old`` [O, inputs, X] with as many outputs and inputs as ``shape``.

    Inputs are channels, or squares of channels each.
    """
    if old.shape == shape:
        return old
    wide = old[torch.arange(shape[0]) % len(old)]
    if wide.shape == shape:
        return wide
    before, after = channels
    sources_W = torch.arange(after) % before
    parts_OW = torch.from_numpy(rng.uniform(_LEAST_PART, _LARGEST_PART, (shape[0], after)))
    totals_OC = torch.zeros(shape[0], before, dtype=parts_OW.dtype)
    totals_OC.index_add_(1, sources_W, parts_OW)
    shares_OW = (parts_OW / totals_OC[:, sources_W]).to(old.dtype)
    by_channel = wide.reshape(shape[0], -1, before, *shape[2:])[:, :, sources_W]
    shares = shares_OW.view(shape[0], 1, after, *[1] * (old.ndim - 2))
    return (by_channel * shares).reshape(shape)
