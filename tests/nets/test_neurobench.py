"""Counts of spikes, operations and memory against NeuroBench's, to the last one."""

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
import torch
from torch import nn

import chess_snn
from chess_snn.nets import build_network, count_work, footprint, load_network, net_config
from chess_snn.nets.model import layers
from chess_snn.nets.model.layers import ConvNorm, Neurons

pytestmark = pytest.mark.oracle

MISSING = "is not installed: counts were NOT compared with it"
snntorch = pytest.importorskip("snntorch", reason=f"snntorch {MISSING}")
workload = pytest.importorskip("neurobench.metrics.workload", reason=f"neurobench {MISSING}")
static = pytest.importorskip("neurobench.metrics.static", reason=f"neurobench {MISSING}")
models = pytest.importorskip("neurobench.models", reason=f"neurobench {MISSING}")

NUM_POSITIONS = 3
SHIPPED = Path(chess_snn.__file__).parent / "networks" / "chess" / "weights.safetensors"
ROUNDED = 1024
"""Weights are multiples of 1 / ROUNDED: convolutions are exact then, in whatever order they add."""


class EachTick(nn.Module):
    """A neuron of one tick, over all ticks."""

    def __init__(self, cell, ticks_of=lambda current: current):
        super().__init__()
        self.cell, self.ticks_of = cell, ticks_of

    def forward(self, current):
        ticks = self.ticks_of(current)
        self.cell.mem = torch.zeros_like(ticks[0])
        return torch.stack([self.cell(tick) for tick in ticks])


class IntegrateAndFire(snntorch.Leaky):
    """No leak, and the threshold is subtracted in the tick of the spike.

    snnTorch's own would subtract it from the next tick too, and miss a second spike.
    """

    def forward(self, current):
        charge = self.mem + current
        spikes = (charge >= self.threshold).float()
        self.mem = charge - spikes * self.threshold
        return spikes


class SumOfTicks(nn.Module):
    """One current of all virtual ticks, repeated in each."""

    def __init__(self, norm, levels):
        super().__init__()
        self.norm, self.levels = norm, levels

    def forward(self, currents):
        current = self.norm(currents.unflatten(0, (self.levels, -1)).sum(0))
        return current.repeat(self.levels, 1, 1, 1)


def in_binary_spikes(network):
    """``network``, whose neurons are snnTorch's, each firing at most once a tick.

    Integer neurons get their current, repeated in each virtual tick, once.
    """
    config = network.config
    levels, threshold = config.most_spikes, config.threshold

    def make_leaky():
        return EachTick(snntorch.Leaky(
            beta=config.decay, threshold=threshold, reset_mechanism="zero", reset_delay=False,
            init_hidden=True,
        ))

    def make_integrating(current_of=lambda currents: currents[0]):
        def ticks_of(currents):
            current = current_of(currents)
            later = torch.zeros(levels - 1, *current.shape)
            return torch.cat([(current + threshold / 2).unsqueeze(0), later])

        return EachTick(
            IntegrateAndFire(beta=1.0, threshold=threshold, init_hidden=True), ticks_of
        )

    is_integer = config.activation == "ilif"
    for name, module in list(network.named_modules()):
        if isinstance(module, Neurons):
            network.set_submodule(name, make_integrating() if is_integer else make_leaky())
        if isinstance(module, ConvNorm) and is_integer and name != "stem":
            module.norm = SumOfTicks(module.norm, levels)
    if is_integer:
        bias = network.value.hidden.bias
        network.value.neurons2 = make_integrating(
            lambda currents: currents.sum(0) - (levels - 1) * bias
        )
    return network


def made(spec, size, activation, overfit, positions, steps):
    config = net_config(size, target_readout=size == "small").with_activation(activation)
    network = build_network(spec, config, seed=5)
    if steps:
        # Learnt by other roundings, a charge could lie at its threshold.
        with patch.object(layers, "can_convolve", lambda *_: False):
            overfit(network, positions[:8], steps=steps)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                module.weight.copy_((module.weight * ROUNDED).round() / ROUNDED)
                if module.bias is not None:
                    module.bias.copy_((module.bias * ROUNDED).round() / ROUNDED)
    return network.eval()


@torch.no_grad()
def compare(network, planes):
    """All counts, of each position alone: NeuroBench adds in float32, up to 2**24."""
    model = models.TorchModel(network)
    # Not asked for in play.
    network.value.plies_left_readout = nn.Identity()
    counted = [count_work(network, planes[row : row + 1]) for row in range(len(planes))]
    together = count_work(network, planes)
    expected_footprint, expected_sparsity = static.Footprint()(model), static.ConnectionSparsity()(
        model
    )
    assert footprint(network) == expected_footprint
    assert round(together.connection_sparsity, 4) == expected_sparsity

    if network.config.is_spiking:
        in_binary_spikes(network)
        model.add_activation_module(snntorch.SpikingNeuron)
    else:
        model.add_activation_module(Neurons)
    model.register_hooks()
    membranes, sparsity = workload.MembraneUpdates(), workload.ActivationSparsity()
    layers = [workload.SynapticOperations() for _ in model.connection_hooks]
    zeros = 0.0
    for row, ours in enumerate(counted):
        data = planes[row : row + 1], None
        model.reset_hooks()
        model(data[0])
        assert 1 - ours.activation_sparsity == pytest.approx(
            1 - sparsity(model, None, data), rel=1e-12
        )
        zeros += sparsity(model, None, data)
        membranes(model, None, data)
        for metric, hook, name in zip(
            layers, list(model.connection_hooks), ours.synapses, strict=True
        ):
            metric.reset()
            metric(SimpleNamespace(connection_hooks=[hook]), None, data)
            layer = ours.synapses[name]
            assert (layer.accumulates, layer.multiply_accumulates, layer.dense) == (
                metric.AC, metric.MAC, metric.total_synops
            ), name
    updates = sum(membranes.neuron_membrane_updates.values())
    assert updates == together.total("membrane_updates")
    assert together.activation_sparsity == pytest.approx(zeros / len(planes), rel=1e-9)
    for count in ("accumulates", "multiply_accumulates", "dense", "membrane_updates"):
        assert together.total(count) == sum(each.total(count) for each in counted)
    return together


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("activation", ["lif", "ilif", "relu"])
@pytest.mark.parametrize("size", ["tiny", "small"])
def test_counts_equal_neurobench(spec, positions, overfit, size, activation, steps):
    network = made(spec, size, activation, overfit, positions, steps)
    together = compare(network, positions[:: 96 // NUM_POSITIONS].tensor())
    assert together.total("accumulates") > 0
    assert together.total("multiply_accumulates") > 0
    assert (together.total("membrane_updates") > 0) == (activation != "relu")


def test_counts_of_the_shipped_network_equal_neurobench(positions):
    """Trained for hours; its weights are rounded, as all here."""
    network = load_network(SHIPPED)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                module.weight.copy_((module.weight * ROUNDED).round() / ROUNDED)
    together = compare(network.eval(), positions[::32].tensor())
    assert 0 < together.connection_sparsity < 1
    assert 0.5 < together.activation_sparsity < 1
