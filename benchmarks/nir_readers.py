"""NIR files run by other libraries, spike by spike beside our network; for the benchmark `export`.

Dimensions: T ticks, B batch, X neurons of one layer, A actions or other outputs of a head.
"""

import contextlib
import importlib
import importlib.util
import io
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from chess_snn.nets import InferenceOutput, Network, freeze
from chess_snn.nets.analysis.folded_layers import FoldedLayers
from chess_snn.nets.inference_neurons import InferenceNeurons
from chess_snn.nets.model.neuron import lif_step


def with_snntorch(path: Path) -> nn.Module:
    """The graph at ``path`` as a module of snnTorch; neurons keep their membranes in themselves."""
    library: Any = importlib.import_module("snntorch.import_nir")
    # It prints every array of time constants.
    with contextlib.redirect_stdout(io.StringIO()):
        module: nn.Module = library.import_from_nir(_read(path))
    return module


def with_spikingjelly(path: Path) -> nn.Module:
    """The graph at ``path`` as a module of SpikingJelly."""
    library: Any = importlib.import_module("spikingjelly.activation_based.nir_exchange")
    module: nn.Module = library.import_from_nir(_read(path), dt=_step_s())
    return module


def with_norse(path: Path) -> nn.Module:
    """The graph at ``path`` as a module of Norse."""
    library: Any = importlib.import_module("norse.torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of nirtorch's, which Norse calls
        module: Any = library.from_nir(_read(path), dt=_step_s())
    # It would compute depth first: what reads side by side neurons before all of them have fired.
    graph = module.graph
    before = {node: graph.find_source_nodes_of(node) for node in graph.node_list}
    module.execution_order = list(TopologicalSorter(before).static_order())
    found: nn.Module = module
    return found


READERS: Final[Mapping[str, Callable[[Path], nn.Module]]] = {
    "snnTorch": with_snntorch, "SpikingJelly": with_spikingjelly, "Norse": with_norse,
}
"""Readers of a graph, by the name of the library."""


def missing_packages(library: str) -> list[str]:
    """Packages that ``library`` needs to read our exports, and that are not installed."""
    needs = [library.lower(), *(["nir", "nirtorch"] if library in READERS else ["onnx"])]
    return [name for name in needs if importlib.util.find_spec(name) is None]


@dataclass(frozen=True, slots=True)
class SpikingAnswer:
    """Answer of a head to B positions, and every spike on the way."""

    logits_BA: Tensor
    """float32, of all actions."""
    spikes: dict[str, Tensor]
    """float32[T, B, X], by the name of the layer in NIR."""


@torch.no_grad()
def run_graph(module: nn.Module, planes_BPHW: Tensor, ticks: int) -> SpikingAnswer:
    """Answer of ``module``, a graph of one head as a library read it, to ``planes_BPHW``."""
    fired: defaultdict[str, list[Tensor]] = defaultdict(list)

    def watch(name: str, child: nn.Module) -> torch.utils.hooks.RemovableHandle:
        def keep(_child: nn.Module, _inputs: object, output: Any) -> None:
            spikes = output[0] if isinstance(output, tuple) else output
            fired[name].append(spikes.flatten(1))

        return child.register_forward_hook(keep)

    children = dict(module.named_children())
    for child in children.values():
        reset: Callable[[], object] | None = getattr(child, "reset_mem", None)
        if reset is not None:
            reset()  # snnTorch's neurons remember the positions before
    handles = [watch(name, child) for name, child in children.items() if "neurons" in name]
    state, total = None, torch.zeros(())
    for _ in range(ticks):
        output, state = module(planes_BPHW, state)
        total = total + output
    for handle in handles:
        handle.remove()
    logits_BA = (total / ticks).movedim(1, -1).flatten(1)
    return SpikingAnswer(logits_BA, {name: torch.stack(each) for name, each in fired.items()})


class _Recorded(InferenceNeurons):
    """Keep what every layer was given and fired, in the order of the layers."""

    layers: list[tuple[Tensor, Tensor]]

    def fire(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        spikes_TBX = super().fire(current_TBX, bias_C)
        self.layers.append((current_TBX.flatten(2), spikes_TBX.flatten(2)))
        return spikes_TBX


@dataclass(frozen=True, slots=True)
class Expected:
    """Answer of our spiking network to B positions in float32, and its neurons one by one."""

    answer: InferenceOutput
    spikes: dict[str, Tensor]
    """float32[T, B, X], by the name of the layer."""
    distances: dict[str, Tensor]
    """float32[T, B, X]: from the charge of each neuron to the threshold next to it."""


@torch.no_grad()
def expect(network: Network, layers: FoldedLayers, planes_BPHW: Tensor) -> Expected:
    """Answer of ``network``, whose ``layers`` are given, to ``planes_BPHW``."""
    neurons = _Recorded(network.config)
    neurons.layers = []
    answer = freeze(network, "fp32", neurons=neurons)(planes_BPHW)
    names = [
        layer.name for layer in (*layers.trunk, *layers.policy, *layers.value) if layer.conv is None
    ]
    recorded = dict(zip(names, neurons.layers, strict=True))
    return Expected(
        answer,
        {name: spikes for name, (_, spikes) in recorded.items()},
        {name: _distances(layers, current) for name, (current, _) in recorded.items()},
    )


def _distances(layers: FoldedLayers, current_TBX: Tensor) -> Tensor:
    config, membrane_BX, charges = layers.config, None, []
    for current_BX in current_TBX:
        charge_BX, _, membrane_BX = lif_step(
            current_BX, membrane_BX, config.decay, config.threshold
        )
        charges.append(charge_BX)
    charge_TBX = torch.stack(charges)
    return torch.stack([(charge_TBX - each).abs() for each in layers.thresholds]).amin(0)


@dataclass(slots=True)
class SpikeDifferences:
    """Spikes of a library that are not ours, over some positions."""

    ties: int = 0
    """The first ones of their positions: nothing differs but the rounding of a charge."""
    farthest_tie: float = 0.0
    """Largest distance of a tie's charge from the threshold."""
    following: int = 0
    """Those that follow from ties."""
    spikes: int = 0
    """All that our network fired, in the layers that were compared."""

    def count(self, expected: Expected, found: Mapping[str, Tensor]) -> Tensor:
        """Add the spikes of B positions; bool[B], which of them have differences."""
        is_off_B = torch.zeros(len(expected.answer.policy_logits_BA), dtype=torch.bool)
        theirs = {name: _of_layer(found, name) for name in expected.spikes}
        ticks = next(iter(expected.spikes.values())).shape[0]
        for tick in range(ticks):  # causes come before what follows from them
            for name, ours_TBX in expected.spikes.items():
                their_TBX = theirs[name]
                if their_TBX is None:
                    continue  # of the other head
                self.spikes += int(ours_TBX[tick].sum())
                differs_BX = ours_TBX[tick] != their_TBX[tick]
                is_tie_BX = differs_BX & ~is_off_B.unsqueeze(1)
                self.ties += int(is_tie_BX.sum())
                self.following += int((differs_BX & ~is_tie_BX).sum())
                tied = expected.distances[name][tick][is_tie_BX]
                self.farthest_tie = max(self.farthest_tie, *tied.tolist(), 0.0)
                is_off_B |= differs_BX.any(1)
        return is_off_B


def _of_layer(spikes: Mapping[str, Tensor], name: str) -> Tensor | None:
    """The spikes of layer ``name``, added over the levels of integer neurons; None without it."""
    name = name.replace(".", "_")
    if name in spikes:
        return spikes[name]
    level, levels = 1, []
    while f"{name}_{level}" in spikes:
        levels.append(spikes[f"{name}_{level}"])
        level += 1
    return torch.stack(levels).sum(0) if levels else None


def _read(path: Path) -> Any:
    nir: Any = importlib.import_module("nir")
    return nir.read(path)


def _step_s() -> float:
    """Seconds of a tick in our files; imported late, for it needs nir."""
    step_s: float = importlib.import_module("chess_snn.nets.analysis.nir_file").DT
    return step_s
