"""How much a spiking network spikes, layer by layer."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from chess_snn.nets.layers import Neurons
from chess_snn.nets.network import Network


@dataclass(frozen=True, slots=True)
class LayerSpikes:
    """What the neurons of one layer fired over some positions."""

    spikes: float
    chances: int
    """Neurons times ticks times positions: as many spikes as there could have been."""

    @property
    def rate(self) -> float:
        """Share of neurons and ticks that spiked, in [0, 1]."""
        return self.spikes / self.chances


@dataclass(frozen=True, slots=True)
class SpikeCounts:
    """What a network fired while it evaluated some positions; an ordinary twin fires nothing."""

    layers: dict[str, LayerSpikes]
    """By the layer's name."""
    num_positions: int

    @property
    def per_evaluation(self) -> float:
        """Mean number of spikes in the whole network when it evaluates one position."""
        return sum(layer.spikes for layer in self.layers.values()) / self.num_positions

    @property
    def rate(self) -> float:
        """Share of all neurons and ticks of the network that spiked, in [0, 1]; 0 for a twin."""
        chances = sum(layer.chances for layer in self.layers.values())
        return sum(layer.spikes for layer in self.layers.values()) / chances if chances else 0.0


@torch.no_grad()
def count_spikes(network: Network, planes_BPHW: Tensor) -> SpikeCounts:
    """Count what ``network`` fires for B >= 1 positions.

    It is evaluated with its running statistics and left as it was.
    """
    layers: dict[str, LayerSpikes] = {}
    if network.config.is_spiking:
        was_training = network.training
        network.eval()
        try:
            with _counting(network) as layers:
                network(planes_BPHW)
        finally:
            network.train(was_training)
    return SpikeCounts(layers, len(planes_BPHW))


@contextmanager
def _counting(network: Network) -> Iterator[dict[str, LayerSpikes]]:
    """Count what every layer of neurons fires while the context is open."""
    counts: dict[str, LayerSpikes] = {}

    def count(name: str, spikes: Tensor) -> None:
        counts[name] = LayerSpikes(float(spikes.sum(dtype=torch.float64)), spikes.numel())

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
