"""Our network with the neurons of other spiking libraries, for `net`, `train` and `gpu`.

A peer is a copy of a :class:`chess_snn.nets.Network` in which every layer of neurons is the other
library's, with the same constants. The rest is what its users write as well: torch's convolutions
and batch normalisation with the ticks folded into the batch (as SpikingJelly's
``SeqToANNContainer`` does), normalisation not folded, gradients by autograd. In evaluation mode a
peer gives our network's answers, up to rounding.

A peer's library is imported when the first copy is made.
"""

import copy
import importlib
import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor, nn

from benchmarks.harness import QUICK, Work, rates_in_turn
from chess_snn.nets import NetConfig, Network, NetworkOutput, Precision
from chess_snn.nets.model.layers import Convolution, Neurons

MakePeer: TypeAlias = Callable[[Network], Network]

LAYOUTS: Final = {
    "channels first": torch.contiguous_format, "channels last": torch.channels_last,
}
"""Torch's default, and what one line of user code selects."""


def with_spikingjelly(network: Network) -> Network:
    """A copy of ``network`` with SpikingJelly's multi-step ``LIFNode``, in torch's own code."""
    neuron: Any = importlib.import_module("spikingjelly.activation_based.neuron")
    surrogate: Any = importlib.import_module("spikingjelly.activation_based.surrogate")
    functional: Any = importlib.import_module("spikingjelly.activation_based.functional")

    def make(config: NetConfig) -> nn.Module:
        # Its charge v - v / tau + x is ours, decay * v + x.
        node: nn.Module = neuron.LIFNode(
            tau=1 / (1 - config.decay), decay_input=False, v_threshold=config.threshold,
            v_reset=0.0, detach_reset=True, step_mode="m",
            surrogate_function=surrogate.ATan(alpha=config.surrogate_alpha),
        )
        return node

    def reset(_stem: nn.Module, _inputs: tuple[Tensor, ...]) -> None:
        functional.reset_net(peer)

    peer = _with_neurons(network, make)
    # Its neurons remember their membrane from call to call; each begins with the stem.
    peer.stem.register_forward_pre_hook(reset)
    return peer


def with_snntorch(network: Network) -> Network:
    """A copy of ``network`` with snnTorch's ``Leaky``, tick after tick.

    It fires above the threshold and not at it, which no current of a trained network meets.
    """
    snntorch: Any = importlib.import_module("snntorch")
    surrogate: Any = importlib.import_module("snntorch.surrogate")

    def make(config: NetConfig) -> nn.Module:
        return _EachTick(
            snntorch.Leaky(
                beta=config.decay, threshold=config.threshold, reset_mechanism="zero",
                spike_grad=surrogate.atan(alpha=config.surrogate_alpha),
            )
        )

    return _with_neurons(network, make)


_PACKAGES: Final[dict[str, tuple[str, MakePeer]]] = {
    "SpikingJelly": ("spikingjelly", with_spikingjelly),
    "snnTorch": ("snntorch", with_snntorch),
}


def installed_peers() -> dict[str, MakePeer]:
    """Makers of peers, by name, of each library that is installed."""
    return {
        name: make for name, (package, make) in _PACKAGES.items()
        if importlib.util.find_spec(package) is not None
    }


def notes_on_missing_peers() -> list[str]:
    """A line for each library that is not installed."""
    missing = [name for name in _PACKAGES if name not in installed_peers()]
    return [
        f"{name} is NOT installed (pip install --no-deps {_PACKAGES[name][0]}): no comparison."
        for name in missing
    ]


def infer(peer: Network, planes_BPHW: Tensor, precision: Precision) -> NetworkOutput:
    """Answer float32 planes, in evaluation mode and without gradient.

    In bf16 under autocast, as their users do it: their neurons take bf16 and fire float32.
    """
    device = planes_BPHW.device.type
    with torch.inference_mode(), torch.autocast(device, torch.bfloat16, precision == "bf16"):
        answer: NetworkOutput = peer.eval()(planes_BPHW)
        return answer


def fastest_inference(
    peer: Network, precision: Precision, layout: torch.memory_format, planes_BPHW: Tensor,
    batch_sizes: Sequence[int],
) -> Work:
    """Inference of ``peer`` in whichever of ``batch_sizes`` gives most positions/s here and now.

    ``peer`` is put into ``layout``; float32 ``planes_BPHW``, at least the largest batch of them,
    come expanded and in it.
    """
    peer.to(memory_format=layout)  # type: ignore[call-overload]
    planes_BPHW = planes_BPHW.contiguous(memory_format=layout)
    works = {
        size: Work(partial(infer, peer, planes_BPHW[:size], precision), size)
        for size in batch_sizes
    }
    rates = rates_in_turn(works, QUICK)
    return works[max(rates, key=rates.__getitem__)]


class _EachTick(nn.Module):
    """A cell of one tick, over all of them, from a membrane of zero."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, current_TBX: Tensor) -> Tensor:
        membrane_BX, fired = torch.zeros_like(current_TBX[0]), []
        for current_BX in current_TBX:
            spikes_BX, membrane_BX = self.cell(current_BX, membrane_BX)
            fired.append(spikes_BX)
        return torch.stack(fired)


def _with_neurons(network: Network, make: Callable[[NetConfig], nn.Module]) -> Network:
    peer = copy.deepcopy(network)
    for name, module in network.named_modules():
        if isinstance(module, Neurons):
            peer.set_submodule(name, make(network.config))
    for module in peer.modules():
        if isinstance(module, Convolution):
            module.__class__ = nn.Conv2d  # type: ignore[assignment]
    return peer
