"""The ReLU baseline in 8 bits, written as a network of integer neurons.

A ReLU whose values are rounded to steps is an integer neuron: x / step, rounded, in [0, 127]. ReLU
commutes with positive factors, so the steps go into weights and biases, and every threshold is 1.
The kernels of integer neurons then compute the baseline as they stand, and both kinds of network
are compared on equal terms.

Steps are calibrated from what normalisation has learnt and no data: behind it a channel's currents
have about the mean ``bias`` and the deviation ``weight``. One step serves a layer, and one all that
carry the shortcut, since their currents are added up.

Dimensions: C channels, F features, S squares, V channels of the value head.
"""

import copy
import math
from dataclasses import replace
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.layers import Block, ConvNorm
from chess_snn.nets.model.network import Network

LEVELS: Final = 127
"""Steps of the largest value: what AVX2 and ARM multiply exactly, as other processors do."""
_DEVIATIONS: Final = 4.0
"""A channel's largest value, in standard deviations above its mean."""
_LEAST: Final = 1e-6
"""Largest value of a layer that is never above 0."""


def eight_bit_config(config: NetConfig) -> NetConfig:
    """The shape of a network that plays in int8: the baseline has integer neurons there."""
    if config.is_spiking:
        return config
    return replace(config, activation="ilif", levels=LEVELS, threshold=1.0)


@torch.no_grad()
def in_eight_bits(network: Network) -> Network:
    """A copy for play in int8; the baseline's is one of integer neurons, any other is the same.

    It has no use in training: its normalisations hold the biases and nothing more.
    """
    if network.config.is_spiking:
        return network
    source = copy.deepcopy(network).eval().float().cpu()
    blocks = [block for block in source.blocks if isinstance(block, Block)]
    carriers = [source.stem, *(block.conv2 for block in blocks)]
    means_C = torch.stack([layer.norm.bias for layer in carriers]).cumsum(0)
    variances_C = torch.stack([layer.norm.weight.square() for layer in carriers]).cumsum(0)
    carried = _step(means_C, variances_C.sqrt())
    policy, value = source.policy, source.value
    seen, read = _step_of(value.conv), _step_of(policy.conv)
    hidden = _hidden_step(value.conv.norm, value.hidden)
    _scale(source.stem, 1.0, carried)
    for block in blocks:
        inner = _step_of(block.conv1)
        _scale(block.conv1, carried, inner)
        _scale(block.conv2, inner, carried)
    _scale(policy.conv, carried, read)
    _scale(value.conv, carried, seen)
    value.hidden.weight *= seen / hidden
    value.hidden.bias.div_(hidden)
    for layer, step in (
        (policy.readout, read), (policy.target_readout, read),
        (value.readout, hidden), (value.plies_left_readout, hidden),
    ):
        if layer is not None:
            layer.weight *= step
    other = Network(network.spec, eight_bit_config(network.config))
    other.load_state_dict(source.state_dict())
    return other.eval()


def _step(means_C: Tensor, deviations_C: Tensor) -> float:
    largest = float((means_C + _DEVIATIONS * deviations_C).max())
    return max(largest, _LEAST) / LEVELS


def _step_of(layer: ConvNorm) -> float:
    return _step(layer.norm.bias, layer.norm.weight.abs())


def _hidden_step(norm: nn.BatchNorm2d, hidden: nn.Linear) -> float:
    """Step behind a linear layer of rectified normal values, a channel's squares alike."""
    mean_V, deviation_V = norm.bias, norm.weight.abs().clamp_min(1e-12)
    ratio_V = mean_V / deviation_V
    below_V = torch.special.ndtr(ratio_V)
    density_V = torch.exp(-ratio_V.square() / 2) / math.sqrt(2 * math.pi)
    first_V = mean_V * below_V + deviation_V * density_V
    second_V = (mean_V**2 + deviation_V**2) * below_V + mean_V * deviation_V * density_V
    spread_V = (second_V - first_V**2).clamp_min(0).sqrt()
    weight_FSV = hidden.weight.view(len(hidden.weight), -1, len(mean_V))
    mean_F = (weight_FSV.sum(1) * first_V).sum(1) + hidden.bias
    deviation_F = (weight_FSV.abs().sum(1) * spread_V).square().sum(1).sqrt()
    return _step(mean_F, deviation_F)


def _scale(layer: ConvNorm, step_in: float, step_out: float) -> None:
    """Fold the normalisation of ``layer`` into it, for values counted in steps."""
    folded = fuse_conv_bn_eval(layer.conv, layer.norm)
    assert folded.bias is not None
    layer.conv.weight.copy_(folded.weight * (step_in / step_out))
    norm = layer.norm
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.running_mean.zero_()
    norm.running_var.fill_(1 - norm.eps)
    norm.weight.fill_(1)
    norm.bias.copy_(folded.bias / step_out)
