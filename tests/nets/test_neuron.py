"""The neuron's reference: a trace by hand, closed forms, and no memory."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.nets.model.neuron import lif, lif_step, surrogate_derivative

# x[t], then h[t], s[t] and v[t] by hand, with decay 0.5 and threshold 0.5.
TRACE = [
    (0.25, 0.25, 0, 0.25),
    (0.25, 0.375, 0, 0.375),
    (0.3125, 0.5, 1, 0.0),  # at the threshold is a spike
    (-1.0, -1.0, 0, -1.0),
    (0.875, 0.375, 0, 0.375),
    (2.0, 2.1875, 1, 0.0),  # hard reset: what is above the threshold is lost
    (0.25, 0.25, 0, 0.25),
]


def test_a_trace_by_hand():
    membrane = None
    for current, charge, spike, after in TRACE:
        h, fired, membrane = lif_step(torch.tensor(current), membrane, 0.5, 0.5)
        assert (h.item(), int(fired), membrane.item()) == (charge, spike, after)


def test_all_ticks_at_once_give_the_trace():
    current = torch.tensor([row[0] for row in TRACE]).unsqueeze(1)
    assert lif(current, 0.5, 0.5).flatten().tolist() == [row[2] for row in TRACE]


def test_surrogate_is_the_derivative_of_an_arctangent():
    x = torch.linspace(-3, 3, 41, dtype=torch.float64, requires_grad=True)
    for alpha in (0.5, 2.0, 5.0):
        smooth_step = torch.atan(math.pi / 2 * alpha * x) / math.pi + 0.5
        (expected,) = torch.autograd.grad(smooth_step.sum(), x)
        torch.testing.assert_close(surrogate_derivative(x.detach(), alpha), expected)


def test_gradient_by_hand_over_two_ticks_without_and_with_a_reset_between():
    def gradient(first):
        x = torch.tensor([[first], [0.4]], requires_grad=True)
        lif(x, 0.5, 0.5)[1].backward()
        return x.grad.flatten()

    def slope(distance):
        return 1 / (1 + (math.pi * distance) ** 2)

    silent = slope(0.5 * 0.2 + 0.4 - 0.5)
    torch.testing.assert_close(gradient(0.2), torch.tensor([0.5 * silent, silent]))
    # The first tick fires, so its charge does not reach the second.
    torch.testing.assert_close(gradient(0.9), torch.tensor([0.0, slope(0.4 - 0.5)]))


@given(st.integers(1, 6), st.integers(1, 40), st.integers(0, 2**31))
def test_a_neuron_does_not_see_its_neighbours_nor_the_call_before(ticks, size, seed):
    generator = torch.Generator().manual_seed(seed)
    current = torch.randn(ticks, size, generator=generator)
    expected = torch.cat([lif(current[:, i : i + 1], 0.5, 0.5) for i in range(size)], dim=1)
    lif(torch.full((ticks, size), 0.49), 0.5, 0.5)
    assert torch.equal(lif(current, 0.5, 0.5), expected)


def test_the_membrane_is_float32_for_bfloat16_currents():
    # 1/4 + 2^-9 and 3/8 are bfloat16; their charge 1/2 + 2^-10 is not, and would round to 1/2 + 0.
    current = torch.tensor([[0.25 + 2**-9], [0.375]], dtype=torch.bfloat16)
    _, _, membrane = lif_step(current[0], None, 0.5, 0.5)
    charge, _, _ = lif_step(current[1], membrane, 0.5, 0.5)
    assert membrane.dtype == charge.dtype == torch.float32
    assert charge.item() == 0.5 + 2**-10
    spikes = lif(current, 0.5, 0.5 + 2**-11)
    assert spikes.dtype == torch.bfloat16
    assert spikes.flatten().tolist() == [0, 1]


@pytest.mark.parametrize("ticks", [1, 4])
def test_an_expanded_current_keeps_channels_last(ticks):
    static = torch.randn(2, 6, 8, 8).contiguous(memory_format=torch.channels_last)
    spikes = lif(static.expand(ticks, *static.shape), 0.5, 0.5)
    assert spikes[0].is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(spikes, lif(static.expand(ticks, *static.shape).contiguous(), 0.5, 0.5))
