"""The neuron against other projects' neurons: outputs and gradients."""

import pytest
import torch

from chess_snn.nets.neuron import lif
from chess_snn.nets.neuron_cpu import lif_cpu

pytestmark = pytest.mark.oracle

DECAY, THRESHOLD, ALPHA = 0.5, 0.5, 2.0
OURS = pytest.mark.parametrize("ours", [lif, lif_cpu])
TICKS = pytest.mark.parametrize("ticks", [1, 2, 4, 7])


def spikes_and_gradient(neuron, current):
    """Of a loss that weighs every spike differently."""
    current = current.clone().requires_grad_()
    spikes = neuron(current)
    weights = torch.randn(spikes.shape, generator=torch.Generator().manual_seed(2))
    (spikes * weights).sum().backward()
    return spikes.detach(), current.grad


def import_or_skip(module):
    return pytest.importorskip(
        module, reason=f"{module} is not installed: the neuron was NOT compared with it"
    )


def random_current(ticks):
    return torch.randn(ticks, 3, 5, 8, 8, generator=torch.Generator().manual_seed(ticks))


@OURS
@TICKS
def test_equals_spikingjelly_bit_for_bit(ours, ticks):
    neuron = import_or_skip("spikingjelly.activation_based.neuron")
    surrogate = import_or_skip("spikingjelly.activation_based.surrogate")
    # tau = 2 without decaying the input charges v - v / 2 + x, which is 0.5 v + x.
    node = neuron.LIFNode(
        tau=2.0, decay_input=False, v_threshold=THRESHOLD, v_reset=0.0, detach_reset=True,
        surrogate_function=surrogate.ATan(alpha=ALPHA), step_mode="m",
    )
    current = random_current(ticks)
    expected_spikes, expected_grad = spikes_and_gradient(node, current)
    spikes, grad = spikes_and_gradient(lambda x: ours(x, DECAY, THRESHOLD, ALPHA), current)
    assert 0.05 < spikes.mean() < 0.6
    assert torch.equal(spikes, expected_spikes)
    torch.testing.assert_close(grad, expected_grad, rtol=1e-6, atol=1e-7)


@OURS
@TICKS
@pytest.mark.parametrize("decay", [0.5, 0.9])
def test_equals_snntorch(ours, ticks, decay):
    snntorch = import_or_skip("snntorch")
    surrogate = import_or_skip("snntorch.surrogate")
    # It resets in the tick after the spike, and fires above the threshold, not at it; continuous
    # random currents never hit it.
    cell = snntorch.Leaky(
        beta=decay, threshold=THRESHOLD, spike_grad=surrogate.atan(alpha=ALPHA),
        reset_mechanism="zero",
    )

    def unrolled(current):
        membrane, spikes = torch.zeros_like(current[0]), []
        for tick in current:
            spike, membrane = cell(tick, membrane)
            spikes.append(spike)
        return torch.stack(spikes)

    current = random_current(ticks)
    expected_spikes, expected_grad = spikes_and_gradient(unrolled, current)
    spikes, grad = spikes_and_gradient(lambda x: ours(x, decay, THRESHOLD, ALPHA), current)
    assert torch.equal(spikes, expected_spikes)
    torch.testing.assert_close(grad, expected_grad, rtol=1e-5, atol=1e-6)
