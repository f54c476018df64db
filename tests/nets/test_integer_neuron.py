"""The integer neuron: its expansions into binary spikes, its gradient, and networks of it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import conv2d

from chess_snn.games import get_game
from chess_snn.nets import build_network, expand_planes, freeze, net_config
from chess_snn.nets.folded_convs import BinaryConv
from chess_snn.nets.model.integer_neuron import _Spikes as ReferenceSpikes
from chess_snn.nets.model.integer_neuron import as_thresholds, integer_spikes

PRECISIONS = (torch.float32, torch.bfloat16)


def currents(*shape, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).mul(2).to(dtype)


def as_ticks(current_X, threshold, levels):
    """The spikes of one integrate-and-fire neuron over ``levels`` ticks, bool[D, X].

    Its sums round otherwise than a comparison: a current within a rounding error of a threshold
    may differ.
    """
    membrane_X = current_X.float() + 0.5 * threshold
    fired = []
    for _ in range(levels):
        fired.append(membrane_X >= threshold)
        membrane_X = membrane_X - threshold * fired[-1].float()
    return torch.stack(fired)


def planes(game, count, seed=0):
    words = np.random.default_rng(seed).integers(
        2**63, size=(count, game.spec.num_planes), dtype=np.int64
    )
    if game.spec.board_shape == (4, 4):
        words &= 0xFFFF
    return expand_planes(torch.from_numpy(words), game.spec.board_shape, torch.float32)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("levels", [1, 2, 4, 7])
@pytest.mark.parametrize("threshold", [0.5, 0.3])
def test_spikes_are_the_rounded_current(dtype, levels, threshold):
    current = currents(3, 5, 700, dtype=dtype)
    spikes = integer_spikes(current, threshold, levels)
    assert spikes.dtype == dtype
    distance = (current.float() / threshold - spikes.float()).abs()
    between = (spikes > 0) & (spikes < levels)
    assert (distance[between] <= 0.5 + 1e-5).all()
    assert (current[spikes == 0].float() <= 0.5 * threshold).all()
    assert (current[spikes == levels].float() >= (levels - 0.5) * threshold - 1e-6).all()


@pytest.mark.parametrize("levels", [1, 3, 8])
def test_an_integrate_and_fire_neuron_fires_as_many_over_ticks(levels):
    # Sums of bfloat16 currents are exact with a threshold that is a power of two.
    current = currents(2, 4000, dtype=torch.bfloat16)
    binary = as_ticks(current, 0.5, levels)
    assert torch.equal(binary.sum(0).bfloat16(), integer_spikes(current, 0.5, levels))


@given(st.floats(-8, 8, width=32), st.integers(1, 16), st.sampled_from([0.25, 0.5, 1.0]))
def test_any_current_fires_as_its_expansions_do(current, levels, threshold):
    x = torch.tensor([current])
    fired = integer_spikes(x, threshold, levels)
    assert fired == as_thresholds(x, threshold, levels).sum()
    nearest = round(current / threshold * 2) / 2
    if abs(current / threshold - nearest) > 1e-3:
        assert fired == as_ticks(x, threshold, levels).sum()


def test_a_convolution_of_integer_spikes_is_the_sum_of_those_of_binary_spikes():
    torch.manual_seed(0)
    conv = nn.Conv2d(32, 32, 3, padding=1)
    current = currents(8, 32, 4, 4).contiguous(memory_format=torch.channels_last)
    scale = conv.weight.detach().abs().amax((1, 2, 3)).view(-1, 1, 1, 1) / 127
    rounded = (conv.weight.detach().div(scale).round() * scale).double()
    expected = sum(
        conv2d(binary.double(), rounded, padding=1) for binary in as_thresholds(current, 0.5, 4)
    ) + conv.bias.detach().double().view(1, -1, 1, 1)
    given = BinaryConv(conv, (4, 4))(integer_spikes(current, 0.5, 4).to(torch.uint8))
    # One rounding to the eight digits of bfloat16.
    torch.testing.assert_close(given.double(), expected, rtol=2**-8, atol=1e-5)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_kernels_give_the_bits_of_the_reference(dtype):
    current = currents(1, 3, 16, 4, 4, dtype=dtype).requires_grad_()
    baseline = current.detach().clone().requires_grad_()
    grad = currents(*current.shape, dtype=dtype, seed=1)
    ours, theirs = integer_spikes(current, 0.3, 5), ReferenceSpikes.apply(baseline, 0.3, 5)
    assert torch.equal(ours, theirs)
    ours.backward(grad)
    theirs.backward(grad)
    torch.testing.assert_close(current.grad, baseline.grad, rtol=2**-7, atol=0)


def test_the_gradient_is_a_rectangle():
    current = torch.tensor([-0.1, 0.0, 0.7, 2.0, 2.1], requires_grad=True)
    integer_spikes(current, 0.5, 4).sum().backward()
    assert current.grad.tolist() == [0.0, 2.0, 2.0, 2.0, 0.0]


@pytest.mark.parametrize("name", ["chess", "2048"])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_frozen_networks_answer_as_trained_ones(name, precision):
    game = get_game(name)
    network = build_network(game.spec, net_config("tiny", activation="ilif", ticks=1), seed=3)
    seen = planes(game, 64)
    network.train()
    network(seen)  # running statistics of some positions
    network.eval()
    with torch.no_grad():
        expected = network(seen).policy_logits_BA
        given = freeze(network, precision)(seen).policy_logits_BA
    if precision == "fp32":
        torch.testing.assert_close(given, expected, rtol=1e-3, atol=1e-3)
    else:
        both = torch.stack([given.flatten(), expected.flatten()])
        assert torch.corrcoef(both)[0, 1] > 0.9
