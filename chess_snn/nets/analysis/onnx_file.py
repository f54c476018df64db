"""Networks as ONNX: all ticks of an evaluation in one graph, from planes to logits.

::

    planes  float32[batch, P, H, W] in {0, 1}
    policy  float32[batch, A], of all actions, legal or not
    value   float32[batch, V], what :func:`chess_snn.nets.model.values.read_value` reads the value
    from
"""

from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from chess_snn.nets.analysis.folded_layers import INPUT, FoldedLayers, Layer
from chess_snn.types import Json

FILE: Final = "network.onnx"
_OPSET, _IR_VERSION = 17, 8
"""Versions of 2022, for older runtimes too; nothing here needs a later one."""
_BATCH: Final = "batch"


def write_network(folder: Path, layers: FoldedLayers, facts: Json) -> None:
    """Write ``network.onnx`` to ``folder``, with ``facts`` as metadata."""
    onnx.save(_model(layers, facts), folder / FILE)


def _model(layers: FoldedLayers, facts: Json) -> onnx.ModelProto:
    graph = _Unrolled(layers)
    outputs = []
    for head in ("policy", "value"):
        *inner, readout = getattr(layers, head)
        graph.add_layers(inner)
        logits_BCHW = graph.convolve(readout, graph.mean_over_ticks(inner[-1]))
        # Action = square * planes + plane.
        last = graph.add("Transpose", logits_BCHW, perm=[0, 2, 3, 1])
        graph.nodes.append(helper.make_node("Flatten", [last], [head]))
        outputs.append(_tensor(head, [int(np.prod(readout.shape))]))
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "chess-snn", [_tensor(INPUT, layers.input_shape)], outputs,
            graph.constants,
        ),
        producer_name="chess-snn", ir_version=_IR_VERSION,
        opset_imports=[helper.make_opsetid("", _OPSET)],
    )
    helper.set_model_props(model, {name: str(value) for name, value in facts.items()})
    onnx.checker.check_model(model, full_check=True)
    return model


def _tensor(name: str, shape: tuple[int, ...] | list[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [_BATCH, *shape])


class _Unrolled:
    """A graph in the making. An operation that is there already is not added twice.

    So what is the same in all ticks, such as the stem, is computed once.
    """

    def __init__(self, layers: FoldedLayers) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._config, self._thresholds = layers.config, layers.thresholds
        self._results: dict[tuple[object, ...], str] = {}
        """Names of tensors, by the operation and its inputs."""
        self._of_ticks: dict[str, list[str]] = {INPUT: [INPUT] * layers.config.ticks}
        """The tensor of each tick, by the name of its layer."""
        self.add_layers(layers.trunk)

    def add_layers(self, layers: list[Layer]) -> None:
        """Compute ``layers`` in every tick."""
        for layer in layers:
            sums = self._sums(layer.sources)
            self._of_ticks[layer.name] = (
                self._fire(sums) if layer.conv is None
                else [self.convolve(layer, source) for source in sums]
            )

    def convolve(self, layer: Layer, source: str) -> str:
        """The convolution ``layer`` of the tensor ``source``."""
        conv = layer.conv
        assert conv is not None
        assert conv.bias is not None
        weight = self._constant(f"{layer.name}.weight", conv.weight.numpy())
        bias = self._constant(f"{layer.name}.bias", conv.bias.numpy())
        pads = [int(length) for length in conv.padding] * 2
        return self.add("Conv", source, weight, bias, pads=pads)

    def mean_over_ticks(self, layer: Layer) -> str:
        """The mean spikes of ``layer`` a tick."""
        total, *others = self._of_ticks[layer.name]
        for other in others:
            total = self.add("Add", total, other)
        return self.add("Div", total, self._number(self._config.ticks)) if others else total

    def add(self, operation: str, *inputs: str, **attributes: object) -> str:
        """The tensor that ``operation`` makes of ``inputs``."""
        key = (operation, inputs, repr(attributes))
        if key not in self._results:
            self._results[key] = f"{operation.lower()}_{len(self.nodes)}"
            self.nodes.append(
                helper.make_node(operation, list(inputs), [self._results[key]], **attributes)
            )
        return self._results[key]

    def _sums(self, sources: tuple[str, ...]) -> list[str]:
        """The sum of ``sources`` in every tick, added in their order."""
        totals, *others = (self._of_ticks[source] for source in sources)
        for other in others:
            totals = [self.add("Add", *pair) for pair in zip(totals, other, strict=True)]
        return totals

    def _fire(self, currents: list[str]) -> list[str]:
        """The spikes of neurons in every tick."""
        activation = self._config.activation
        if activation == "relu":
            return [self.add("Relu", current) for current in currents]
        return (
            [self._integer_spikes(current) for current in currents] if activation == "ilif"
            else self._leaky_spikes(currents)
        )

    def _integer_spikes(self, current: str) -> str:
        total, *others = (self._spikes(current, least) for least in self._thresholds)
        for other in others:
            total = self.add("Add", total, other)
        return total

    def _leaky_spikes(self, currents: list[str]) -> list[str]:
        (threshold,) = self._thresholds
        spikes, charge = [], ""
        for current in currents:
            if charge:
                fired = self._fired(charge, threshold)
                membrane = self.add("Where", fired, self._number(0.0), charge)
                kept = self.add("Mul", membrane, self._number(self._config.decay))
                charge = self.add("Add", kept, current)
            else:
                charge = current
            spikes.append(self._spikes(charge, threshold))
        return spikes

    def _spikes(self, charge: str, threshold: float) -> str:
        return self.add("Cast", self._fired(charge, threshold), to=TensorProto.FLOAT)

    def _fired(self, charge: str, threshold: float) -> str:
        return self.add("GreaterOrEqual", charge, self._number(threshold))

    def _number(self, value: float) -> str:
        return self._constant(f"number_{value!r}", np.array(value, np.float32))

    def _constant(self, name: str, value: np.ndarray) -> str:
        if ("constant", name) not in self._results:
            self._results["constant", name] = name
            self.constants.append(numpy_helper.from_array(value, name))
        return name
