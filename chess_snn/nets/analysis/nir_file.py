"""Spiking networks as NIR, the Neuromorphic Intermediate Representation of nir 1.0.

A graph is one tick of a network and is run T times on the same planes; an answer is the mean of its
outputs. Each head has a graph of its own, trunk included: nirtorch, with which other libraries read
NIR, takes graphs of one output. Edges that meet are added, which is how shortcuts are written.

Libraries read the neurons of a graph differently. What is written here is the same to all:

- They step by ``DT``, and neurons have r = 1, so that h = decay * v + (1 - decay) * input. Weights
  and biases in front of neurons are divided by 1 - decay; they are doubled, exactly, for the usual
  decay of one half. Norse ignores r.
- NIR's neurons fire above their threshold and ours from it on, so a graph has the number before.
- An integer neuron of D levels is D binary neurons side by side, one for each of its thresholds.
"""

from pathlib import Path
from typing import Final

import nir
import numpy as np

from chess_snn.errors import ConfigError
from chess_snn.nets.analysis.folded_layers import INPUT, FoldedLayers, Layer
from chess_snn.types import Json

DT: Final = 1e-4
"""Seconds of one tick: the step of snnTorch, which has no other, and SpikingJelly's default."""
_OUTPUT: Final = "output"
_ANY_DECAY: Final = 0.5
"""Decay of neurons that start at 0 and live for one tick."""


def write_network(folder: Path, layers: FoldedLayers, facts: Json) -> None:
    """Write ``policy.nir`` and ``value.nir`` to ``folder``, with ``facts`` as metadata.

    Raises:
        ConfigError: NIR, or a library that reads it, cannot have the network's neurons.
    """
    _check(layers)
    for head in ("policy", "value"):
        graph = _graph([*layers.trunk, *getattr(layers, head)], layers, facts)
        nir.write(folder / f"{head}.nir", graph)


def _check(layers: FoldedLayers) -> None:
    config = layers.config
    if not config.is_spiking:
        raise ConfigError(
            'NIR is for neurons that spike, and this network has none (net.activation = "relu"); '
            "use --format onnx"
        )
    if config.ticks > 1 and not 0 < config.decay < 1:
        raise ConfigError(
            f"net.decay = {config.decay:g} cannot be written as NIR: SpikingJelly reads leaky "
            "neurons with a decay between 0 and 1 alone; use --format onnx"
        )


def _graph(layers: list[Layer], whole: FoldedLayers, facts: Json) -> nir.NIRGraph:
    decay = whole.config.decay if whole.config.ticks > 1 else _ANY_DECAY
    nodes: dict[str, nir.NIRNode] = {INPUT: nir.Input(np.array(whole.input_shape))}
    names: dict[str, list[str]] = {INPUT: [INPUT]}
    """Nodes by the layer that they stand for."""
    edges: list[tuple[str, str]] = []
    for layer in layers:
        name = layer.name.replace(".", "_")
        made = (
            _neurons(name, layer, whole.thresholds, decay) if layer.conv is None
            else {name: _convolution(layer, 1.0 if layer is layers[-1] else 1 / (1 - decay))}
        )
        nodes |= made
        names[layer.name] = list(made)
        edges += [
            (source, node) for node in made for each in layer.sources for source in names[each]
        ]
    nodes[_OUTPUT] = nir.Output(np.array(layers[-1].shape))
    edges += [(name, _OUTPUT) for name in names[layers[-1].name]]
    return nir.NIRGraph(nodes, edges, metadata=facts)


def _convolution(layer: Layer, scale: float) -> nir.Conv2d:
    conv = layer.conv
    assert conv is not None
    assert conv.bias is not None
    return nir.Conv2d(
        input_shape=None, weight=conv.weight.numpy() * np.float32(scale), stride=(1, 1),
        padding=tuple(conv.padding), dilation=(1, 1), groups=1,
        bias=conv.bias.numpy() * np.float32(scale),
    )


def _neurons(
    name: str, layer: Layer, thresholds: list[float], decay: float
) -> dict[str, nir.LIF]:
    """One node, or one for each level of integer neurons."""
    def of_each(value: float) -> np.ndarray:
        return np.full(layer.shape, value)

    nodes = [
        nir.LIF(
            tau=of_each(DT / (1 - decay)), r=of_each(1.0), v_leak=of_each(0.0),
            v_reset=of_each(0.0),
            v_threshold=of_each(float(np.nextafter(np.float32(threshold), np.float32(0)))),
        )
        for threshold in thresholds
    ]
    if len(nodes) == 1:
        return {name: nodes[0]}
    return {f"{name}_{level}": node for level, node in enumerate(nodes, 1)}
