"""The network as it plays: normalisation folded, channels-last, in one precision, not trainable.

Precision is part of what a network is: in bf16 some spikes differ from those in fp32, and the
two do not always prefer the same move. Readouts are float32 in all.

In int8 the weights of convolutions have 8 bits. Spikes and planes are 0 and 1, so they are 8-bit
integers as they stand: nothing is rounded but the weights, to 127 steps of each output channel's
largest. Products are summed in 32-bit integers, exactly and in any order. On processors with
integer dot products (VNNI, AMX) that is about twice as fast as bfloat16.

In int8 on a GPU all blocks are one kernel (:mod:`chess_snn.nets.gpu.trunk`), or where that does not
fit each convolution with its neurons is one (:mod:`chess_snn.nets.gpu.conv_neuron`). On a CPU all
convolutions of integer neurons may be one (:mod:`chess_snn.nets.cpu.trunk_cpu`).

Processors without bfloat16 (those with AVX2 alone) multiply in float32 what others multiply in
bfloat16, and round the currents to bfloat16: the same numbers, but for the order of sums.

Dimensions: T ticks, B batch, P planes, C channels, H and W board, L columns for legal actions, V
outputs of the value head, X images.
"""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from chess_snn.devices import processor_has_bfloat16
from chess_snn.errors import ConfigError
from chess_snn.games.base import GameSpec
from chess_snn.nets.cpu.dot_tile import TILE_OUTPUTS
from chess_snn.nets.cpu.trunk_cpu import CompiledTrunk, can_compile_trunk
from chess_snn.nets.eight_bits import eight_bit_config, in_eight_bits
from chess_snn.nets.folded_convs import BinaryConv, FloatConv
from chess_snn.nets.gpu.conv_neuron import (
    MOST_FUSED_TICKS,
    FusedConv,
    LayerKind,
    SeparateLayer,
    can_fuse,
)
from chess_snn.nets.gpu.trunk import FusedTrunk, can_fuse_trunk
from chess_snn.nets.inference_neurons import InferenceNeurons, choose_neurons
from chess_snn.nets.model.config import NetConfig, Precision
from chess_snn.nets.model.layers import (
    INPUTS_MULTIPLE,
    Block,
    ConvNorm,
    add_empty_inputs,
)
from chess_snn.nets.model.network import Network
from chess_snn.nets.model.readouts import PolicyReadout, read_float32, squares_first
from chess_snn.settings import check_choice

PRECISIONS: Final = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.bfloat16}
"""Types of currents, and of convolutions except in int8, where weights have 8 bits and spikes are
integers; membranes and readouts are always float32."""
_FEWEST_IMAGES: Final = 16
"""Images of a product on a CPU (positions times ticks), at least: fewer are summed in another order
in float32. Integer convolutions do not see that a batch of one is channels-last."""


@dataclass(frozen=True, slots=True)
class InferenceOutput:
    """The answer of a network that plays for B positions, from the side to move's view."""

    policy_logits_BA: Tensor
    """float32[B, A], legal or not."""
    value_logits_BV: Tensor
    """float32[B, V]: what :func:`chess_snn.nets.model.values.read_value` reads the value from."""


FoldedLayer = SeparateLayer | FusedConv
"""A convolution with its normalisation folded into weights and bias, and its neurons."""


class InferenceNetwork(nn.Module):
    """Network made by :func:`freeze`: the same spikes, in fewer passes over memory.

    It does not predict the plies left, which only training needs. All that comes from weights is a
    parameter or a buffer, so that ``load_state_dict`` makes another network; but in int8 on a CPU
    they are packed.
    """

    def __init__(
        self, network: Network, precision: Precision, neurons: InferenceNeurons,
        device: torch.device, layers: LayerKind = "separate",
    ) -> None:
        super().__init__()
        self.spec, self.config = network.spec, network.config
        self.precision: Precision = precision
        self.dtype = PRECISIONS[precision]
        self.neurons, self.layers = neurons, layers
        # Folded in float32, rounded after.
        source = copy.deepcopy(network).eval().requires_grad_(False).float()
        add_empty_inputs(source.stem.conv, INPUTS_MULTIPLE[device.type])
        self.num_planes = source.stem.conv.in_channels
        """Planes of the input: those that the network sees, and empty ones."""
        policy, value = source.policy, source.value
        late_bias = neurons.adds_bias_for_nothing

        def fold(layer: ConvNorm, late_bias: bool = late_bias) -> FoldedLayer:
            conv = fuse_conv_bn_eval(layer.conv, layer.norm)
            if layers in ("fused", "trunk"):
                return FusedConv(conv, self.config)
            if precision == "int8":
                return SeparateLayer(BinaryConv(conv, self.spec.board_shape), neurons)
            return SeparateLayer(FloatConv(conv, late_bias).to(self.dtype), neurons)

        self.trunk: FusedTrunk | CompiledTrunk | None = None
        blocks = [block for block in source.blocks if isinstance(block, Block)]
        if layers == "compiled":
            inner = [half for block in blocks for half in (block.conv1, block.conv2)]
            self.trunk = CompiledTrunk([
                fuse_conv_bn_eval(layer.conv, layer.norm)
                for layer in (source.stem, *inner, policy.conv, value.conv)
            ], self.config)
        else:
            self.stem = fold(source.stem, late_bias=False)
            self.first_layers = nn.ModuleList(fold(block.conv1) for block in blocks)
            self.second_layers = nn.ModuleList(fold(block.conv2) for block in blocks)
            self.policy_layer, self.value_layer = fold(policy.conv), fold(value.conv)
        if layers == "trunk":
            halves = [layer for block in self.blocks for layer in block]
            fused = cast("list[FusedConv]", [*halves, self.policy_layer])
            self.trunk = FusedTrunk(fused, self.config)
        self.value_hidden = value.hidden.to(self.dtype)
        if device.type == "cpu" and not processor_has_bfloat16():
            self.value_hidden.float()
        self.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.policy_readout = policy.readout.to(device)
        self.target_readout = None if policy.target_readout is None else (
            policy.target_readout.to(device)
        )
        self.value_readout = value.readout.to(device)

    @property
    def input_dtype(self) -> torch.dtype:
        """Type of planes, and of spikes between the layers."""
        return torch.uint8 if self.precision == "int8" else self.dtype

    @property
    def rows_multiple(self) -> int:
        """A CPU's batches are to be filled up to a multiple, so that no answer depends on them."""
        return 1 if self.layers == "compiled" else -(-_FEWEST_IMAGES // self.config.ticks)

    @property
    def readouts(self) -> PolicyReadout:
        """The module that reads the policy from the rates of its neurons."""
        return PolicyReadout(self.spec, self.policy_readout, self.target_readout)

    @property
    def device(self) -> torch.device:
        """The device that it runs on."""
        return self.policy_readout.weight.device

    def has_shape_of(self, other: "InferenceNetwork") -> bool:
        """Whether both differ in their weights alone; False where these are packed."""
        return (
            not any(isinstance(layer, BinaryConv | CompiledTrunk) for layer in self.modules())
            and self.state_dict().keys() == other.state_dict().keys()
            and all(
                getattr(self, name) == getattr(other, name)
                for name in ("spec", "config", "precision", "layers", "device")
            )
        )

    def forward(self, planes_BPHW: Tensor) -> InferenceOutput:
        """Evaluate planes in {0, 1} of any type, on the network's device."""
        fired_TBVHW, rate_BCHW = self._fire(planes_BPHW)
        return InferenceOutput(self.readouts.of_all(rate_BCHW), self._value(fired_TBVHW))

    def answer(
        self, planes_BPHW: Tensor, legal_actions_BL: Tensor, num_legal_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Logits float32[B, L] of the listed actions, -inf behind each list, and value logits.

        Rows of planes beyond the lists (padding) are evaluated and left out of the answer.
        """
        num_rows = len(num_legal_B)
        fired_TBVHW, rate_BCHW = self._fire(planes_BPHW)
        legal_logits_BL = self.readouts.of_legal(
            rate_BCHW[:num_rows], legal_actions_BL, num_legal_B
        )
        return legal_logits_BL, self._value(fired_TBVHW)[:num_rows]

    def input_of(self, planes_BPHW: Tensor) -> Tensor:
        """Planes in {0, 1} as the stem takes them: with the empty ones, in its type and layout.

        Those that the network does not see are left out, or fall on empty ones, of weight 0.
        """
        seen_BPHW = planes_BPHW[:, : self.num_planes]
        if (missing := self.num_planes - seen_BPHW.shape[1]) > 0:
            seen_BPHW = nn.functional.pad(seen_BPHW, (0, 0, 0, 0, 0, missing))
        return seen_BPHW.to(self.input_dtype, memory_format=torch.channels_last)

    @property
    def blocks(self) -> Iterator[tuple[FoldedLayer, FoldedLayer]]:
        """The two layers of each block."""
        both = cast("list[Iterable[FoldedLayer]]", [self.first_layers, self.second_layers])
        return zip(*both, strict=True)

    def _fire(self, planes_BPHW: Tensor) -> tuple[Tensor, Tensor]:
        """Fire the convolutions of the heads.

        Spikes [T, B, V, H, W] of the value head, and rates [B, C, H, W] of the policy head.
        """
        planes = self.input_of(planes_BPHW)
        if isinstance(self.trunk, CompiledTrunk):
            both: tuple[Tensor, Tensor] = self.trunk(planes)
            return both
        if self.trunk is not None:  # it fires the stem's neurons itself
            current_TBCHW, _ = self.stem.fire_static(planes, 1)
            fired_TBCHW, rate_BCHW = self.trunk(current_TBCHW[0])
        else:
            u_TBCHW, fired_TBCHW = self.stem.fire_static(planes, self.config.ticks)
            for layer1, layer2 in self.blocks:
                u_TBCHW, fired_TBCHW = layer2.add_and_fire(u_TBCHW, layer1.fire(fired_TBCHW))
            rate_BCHW = self.policy_layer.mean_rate(fired_TBCHW)
        return self.value_layer.fire(fired_TBCHW), rate_BCHW

    def value_currents(self, seen_XF: Tensor) -> Tensor:
        """Currents of the value head's second layer, from the spikes of its first."""
        currents: Tensor = self.value_hidden(seen_XF.to(self.value_hidden.weight.dtype))
        return currents.to(self.dtype)

    def _value(self, fired_TBVHW: Tensor) -> Tensor:
        seen_TBF = squares_first(fired_TBVHW)
        batch = seen_TBF.shape[1]
        if self.layers == "compiled":  # whose planes are not filled up
            seen_TBF = nn.functional.pad(seen_TBF, (0, 0, 0, -batch % _FEWEST_IMAGES))
        rate_BF = self.neurons.mean_rate(self.value_currents(seen_TBF))
        return read_float32(self.value_readout, rate_BF)[:batch]


def freeze(
    network: Network, precision: Precision, *, device: torch.device | str = "cpu",
    neurons: InferenceNeurons | None = None, layers: LayerKind | None = None,
) -> InferenceNetwork:
    """An inference copy of ``network``, which is left as it is.

    Args:
        network: in training or evaluation mode; running statistics are used either way.
        precision: of convolutions and currents.
        device: where it will run.
        neurons: instead of the device's usual ones (``neurons.kind`` of the result names them).
        layers: what is one kernel; None takes :func:`usual_layers`.

    Raises:
        ConfigError: an unknown precision, one that this network or device cannot have, or
            "compiled" layers where they are not possible.
    """
    check_choice("precision", precision, PRECISIONS)
    device = torch.device(device)
    if precision == "int8":
        network = in_eight_bits(network)
    if layers in (None, "compiled"):
        usual = usual_layers(network.spec, network.config, precision, device)
        if layers not in (None, usual):
            raise ConfigError(
                'layers are "compiled" in int8 on a CPU with AVX2, VNNI or sdot, for integer '
                f'neurons and a multiple of {TILE_OUTPUTS} channels; this network has "{usual}"'
            )
        layers = usual
    if neurons is None:
        integer_spikes = precision == "int8" and device.type == "cpu"
        neurons = choose_neurons(network.config, device, integer_spikes)
    return InferenceNetwork(network, precision, neurons, device, layers).eval()


def usual_layers(
    spec: GameSpec, config: NetConfig, precision: Precision, device: torch.device
) -> LayerKind:
    """The kind of layers that a network has on ``device``: the fastest one.

    Raises:
        ConfigError: there is none.
    """
    if precision != "int8":
        return "separate"
    config = eight_bit_config(config)
    if device.type == "cpu":
        return "compiled" if can_compile_trunk(spec, config) else "separate"
    if not can_fuse(config, device):
        raise ConfigError(
            f'precision "int8" runs on CPUs, and on GPUs since Ampere with Triton for at most '
            f'{MOST_FUSED_TICKS} ticks, not on {device}; use "bf16"'
        )
    return "trunk" if can_fuse_trunk(spec, config, device) else "fused"
