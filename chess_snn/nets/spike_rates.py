"""How much a spiking network spikes, layer by layer."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from chess_snn.nets.layers import Neurons
from chess_snn.nets.network import Network


@dataclass(slots=True)
class _Count:
    spikes: float = 0.0
    chances: int = 0
    """Neurons times ticks times positions."""


def spike_rates(network: Network, planes_BPHW: Tensor) -> dict[str, float]:
    """Share of neurons and ticks that spike, in [0, 1], by the name of the layer.

    The network is evaluated with its running statistics and left as it was. An ordinary twin has
    no spikes, and the answer is empty.
    """
    counts = _count_spikes(network, planes_BPHW)
    return {name: count.spikes / count.chances for name, count in counts.items()}


def spikes_per_evaluation(network: Network, planes_BPHW: Tensor) -> float:
    """Mean number of spikes in the whole network when it evaluates one position."""
    counts = _count_spikes(network, planes_BPHW)
    return sum(count.spikes for count in counts.values()) / len(planes_BPHW)


def spike_share(network: Network, planes_BPHW: Tensor) -> float:
    """Share of all neurons and ticks of the network that spike, in [0, 1]; 0 for a twin."""
    counts = _count_spikes(network, planes_BPHW).values()
    chances = sum(count.chances for count in counts)
    return sum(count.spikes for count in counts) / chances if chances else 0.0


@torch.no_grad()
def _count_spikes(network: Network, planes_BPHW: Tensor) -> dict[str, _Count]:
    if not network.config.is_spiking:
        return {}
    was_training = network.training
    network.eval()
    try:
        with _counting(network) as counts:
            network(planes_BPHW)
    finally:
        network.train(was_training)
    return counts


@contextmanager
def _counting(network: Network) -> Iterator[dict[str, _Count]]:
    """Count what every layer of neurons fires while the context is open."""
    counts: dict[str, _Count] = {}

    def count(name: str, spikes: Tensor) -> None:
        counts[name] = _Count(float(spikes.sum(dtype=torch.float64)), spikes.numel())

    def watch(name: str, layer: Neurons) -> torch.utils.hooks.RemovableHandle:
        def hook(_layer: nn.Module, _inputs: tuple[Tensor, ...], spikes: Tensor) -> None:
            count(name, spikes)

        return layer.register_forward_hook(hook)

    handles = [
        watch(name, layer) for name, layer in network.named_modules() if isinstance(layer, Neurons)
    ]
    try:
        yield counts
    finally:
        for handle in handles:
            handle.remove()
