"""Activity of a network's neurons for one position, neuron by neuron and tick by tick.

It is what pictures of spikes are drawn from. The sums over many positions are in
:mod:`chess_snn.nets.analysis.counts`.

Dimensions: T ticks, B batch, P planes, C channels, H and W board, F features, X: C, H, W or F.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from chess_snn.nets.model.layers import Neurons
from chess_snn.nets.model.network import Network
from chess_snn.nets.model.neuron import lif_step
from chess_snn.types import Float32Array, UInt8Array


@dataclass(frozen=True, slots=True)
class LayerActivity:
    """One layer of neurons, for one position."""

    spikes_TX: UInt8Array
    """uint8[T, C, H, W], or uint8[T, F] behind the value head's linear layer: spikes of each
    neuron in each tick, 0 or 1, of integer neurons up to `levels`."""
    membranes_TX: Float32Array
    """float32, the same shape: the membrane when the neuron decides, in thresholds. A leaky neuron
    fires from 1 on, an integer neuron for the k-th time from k - 1/2 on."""

    def since(self, before: "LayerActivity") -> "LayerActivity":
        """The same membranes, with the sizes of what spikes changed by."""
        most_TX = np.maximum(self.spikes_TX, before.spikes_TX)
        return replace(self, spikes_TX=most_TX - np.minimum(self.spikes_TX, before.spikes_TX))


@torch.no_grad()
def record_activity(
    network: Network, planes_BPHW: Tensor, before_BPHW: Tensor | None = None
) -> list[dict[str, LayerActivity]]:
    """Activity of each layer of neurons for each of B positions, layers in the order of their work.

    The network is evaluated in float32 with its running statistics, and left as it was. A ReLU
    baseline has no spikes: its positions have no layers. With ``before_BPHW``, spikes are the sizes
    of their differences from those of the positions before.
    """
    if before_BPHW is not None:
        pairs = zip(
            record_activity(network, planes_BPHW), record_activity(network, before_BPHW),
            strict=True,
        )
        return [
            {name: layer.since(old[name]) for name, layer in new.items()} for new, old in pairs
        ]
    positions: list[dict[str, LayerActivity]] = [{} for _ in planes_BPHW]
    if not network.config.is_spiking:
        return positions

    def see(name: str, _layer: nn.Module, currents: Tensor, spikes: Tensor) -> None:
        membranes = _membranes(network, currents).numpy()
        fired = spikes.to(torch.uint8).cpu().numpy()
        for b, position in enumerate(positions):
            position[name] = LayerActivity(
                np.ascontiguousarray(fired[:, b]), np.ascontiguousarray(membranes[:, b])
            )

    with watching(network, (Neurons,), see):
        network(planes_BPHW)
    return positions


def _membranes(network: Network, current_TBX: Tensor) -> Tensor:
    """float32[T, B, X] on the CPU, in thresholds."""
    config = network.config
    if config.activation == "ilif":
        return (current_TBX.float() / config.threshold).cpu()
    charges, membrane_BX = [], None
    for current_BX in current_TBX:
        charge_BX, _, membrane_BX = lif_step(
            current_BX, membrane_BX, config.decay, config.threshold
        )
        charges.append(charge_BX)
    return (torch.stack(charges) / config.threshold).cpu()


See = Callable[[str, nn.Module, Tensor, Tensor], None]
"""Gets name, layer, input and output of a layer's call."""


@contextmanager
def watching(
    network: Network, kinds: tuple[type[nn.Module], ...], see: See
) -> Iterator[None]:
    """Evaluation mode, in which ``see`` is called after each layer of ``kinds``."""
    was_training = network.training
    network.eval()
    try:
        with listening(network, kinds, see):
            yield
    finally:
        network.train(was_training)


@contextmanager
def listening(
    network: Network, kinds: tuple[type[nn.Module], ...], see: See
) -> Iterator[None]:
    """The same in the network's present mode."""

    def watch(name: str, layer: nn.Module) -> torch.utils.hooks.RemovableHandle:
        def hook(layer: nn.Module, inputs: tuple[Tensor, ...], outputs: Tensor) -> None:
            see(name, layer, inputs[0], outputs)

        return layer.register_forward_hook(hook)

    handles = [
        watch(name, layer) for name, layer in network.named_modules() if isinstance(layer, kinds)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
