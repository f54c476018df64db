"""Chains of layers and their convolutions against torch's, in float64 and in their precision."""

import pytest
import torch
from torch import nn
from torch.nn.functional import conv2d

from chess_snn.nets import NetConfig, build_network, measuring_spike_rate, net_config
from chess_snn.nets.cpu import chain_cpu
from chess_snn.nets.cpu.conv_cpu import PRECISION, convolve
from chess_snn.nets.cpu.winograd_tile import HAS_PRODUCTS, IN_PAIRS, PRODUCT_COLUMNS
from chess_snn.nets.model import layers

needs_products = pytest.mark.skipif(not HAS_PRODUCTS, reason="this processor has no fast products")
SHAPES = [(3, 32, 32, 8), (1, 32, 64, 8), (5, 64, 32, 4), (9, 30, 32, 8), (2, 1, 32, 4)]
"""B, I, O, H and W: two small boards in one block, and channels that fill no vector."""
MOST_OF_TORCHS_ERROR = 2.2 if IN_PAIRS else 4.0
"""In bfloat16 gradients are rounded twice, so twice torch's, and what few numbers vary. In float32
the sums of transformed numbers are larger than those of numbers."""


def make(batch, inputs, outputs, side, levels=8):
    """Spikes, weights and gradients."""
    generator = torch.Generator().manual_seed(0)
    spikes = torch.randint(-levels, levels + 1, (batch, inputs, side, side), generator=generator)
    weight = 0.1 * torch.randn(outputs, inputs, 3, 3, generator=generator)
    grad = torch.randn(batch, outputs, side, side, generator=generator)
    return (
        channels_last(spikes.clamp(min=0).to(PRECISION)), channels_last(weight),
        channels_last(grad.to(PRECISION)),
    )


def channels_last(tensor):
    return tensor.contiguous(memory_format=torch.channels_last)


def results(convolve, spikes, weight, grad):
    """The result of a convolution, and its gradients."""
    spikes, weight = spikes.clone().requires_grad_(), weight.clone().requires_grad_()
    result = convolve(spikes, weight)
    result.backward(grad)
    return result.detach(), spikes.grad, weight.grad


def by_ours(spikes, weight):
    conv = nn.Conv2d(weight.shape[1], len(weight), 3, padding=1, bias=False)
    del conv.weight
    conv.weight = weight
    return convolve(conv, spikes)


def by_torch(spikes, weight):
    return conv2d(spikes, weight.to(spikes.dtype), padding=1)


@needs_products
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_error_is_that_of_its_precision(shape):
    spikes, weight, grad = make(*shape)
    expected = results(by_torch, spikes.double(), weight.double(), grad.double())
    theirs = results(by_torch, spikes, weight, grad)
    ours = results(by_ours, spikes, weight, grad)
    for name, exact, their, our in zip(
        ("result", "inputs", "weights"), expected, theirs, ours, strict=True
    ):
        assert our.shape == exact.shape, name
        assert error(our, exact) <= MOST_OF_TORCHS_ERROR * error(their, exact), name


def error(found, exact):
    return (found.double() - exact).square().mean().sqrt().item()


@needs_products
def test_whole_weights_give_whole_sums():
    """Numbers of spikes and weights that bfloat16 has too are multiplied and added exactly."""
    spikes, weight, grad = make(4, 32, 32, 8, levels=2)
    weight, grad = (4 * weight.mul(8).round().clamp(-1, 1), grad.sign())
    ours = results(by_ours, spikes, weight, grad)
    expected = results(by_torch, spikes.double(), weight.double(), grad.double())
    for our, exact in zip(ours, expected, strict=True):
        assert torch.equal(our.double(), exact.to(our.dtype).double())


def learn(spec, planes, config, precision, by_chain, monkeypatch):
    """Gradients and statistics of a network, and its rate of spikes."""
    with monkeypatch.context() as patch:
        if not by_chain:
            for name in ("can_run", "can_convolve"):
                patch.setattr(layers, name, lambda *_: False)
        network = build_network(spec, config, 0).to(memory_format=torch.channels_last)
        with (
            measuring_spike_rate(network) as rate,
            torch.autocast("cpu", precision, enabled=precision is not None),
        ):
            output = network(planes)
        (output.policy_logits_BA.square().mean() + rate()).backward()
    return {
        **{name: tensor.grad for name, tensor in network.named_parameters()
           if tensor.grad is not None},
        **dict(network.named_buffers()), "rate": rate().detach(),
    }


@needs_products
@pytest.mark.parametrize("activation", ["ilif", "relu", "lif"])
def test_a_network_learns_by_chains_what_it_learns_by_torch(
    spec, positions, monkeypatch, activation
):
    """Gradients are as near to exact ones as torch's in this precision are."""
    config = net_config("tiny", blocks=2, levels=8).with_activation(activation)
    planes, precision = positions[:3].tensor(), PRECISION if IN_PAIRS else None
    exact = learn(spec, planes, config, None, False, monkeypatch)
    theirs = learn(spec, planes, config, precision, False, monkeypatch)
    ours = learn(spec, planes, config, precision, True, monkeypatch)
    assert ours.keys() == exact.keys()
    assert not torch.equal(ours["stem.conv.weight"], theirs["stem.conv.weight"])
    for name, tensor in exact.items():
        assert ours[name].shape == tensor.shape, name
        if tensor.is_floating_point():
            scale = max(tensor.square().mean().sqrt().item(), 1e-6)
            margin = (0.1 if IN_PAIRS else 1e-4) * scale
            assert error(ours[name], tensor) < 2 * error(theirs[name], tensor) + margin, name
        else:
            assert torch.equal(ours[name], tensor), name


def test_only_layers_that_it_knows():
    config = NetConfig(activation="ilif", ticks=1)

    def can_run(shape=(2, 32, 8, 8), outputs=32, config=config, dtype=PRECISION):
        conv, norm = nn.Conv2d(shape[1], outputs, 3, padding=1), nn.BatchNorm2d(outputs)
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            return chain_cpu.can_run([(conv, norm)], config, torch.zeros(shape))

    assert can_run() == HAS_PRODUCTS
    assert can_run((2, 5, 4, 4)) == HAS_PRODUCTS
    assert can_run(config=NetConfig(activation="relu", ticks=1)) == HAS_PRODUCTS
    assert not can_run((2, 32, 6, 8))
    assert not can_run(outputs=PRODUCT_COLUMNS // 2)
    assert not can_run(config=NetConfig(ticks=1))
    assert not can_run(dtype=torch.float16)
