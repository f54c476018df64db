"""The network as it plays: normalisation folded, channels-last, in one precision, not trainable.

Precision is part of what a network is: in bf16 some spikes differ from those in fp32, and the
two do not always prefer the same move. Readouts are float32 in all.

In int8 the weights of convolutions have 8 bits. Spikes and planes are 0 and 1, so they are 8-bit
integers as they stand: nothing is rounded but the weights, to 127 steps of each output channel's
largest. Products are summed in 32-bit integers, exactly and in any order. On processors with
integer dot products (AVX-512 VNNI, AMX) that is about twice as fast as bfloat16.

Processors without bfloat16 (those with AVX2 alone) convolve in float32 and round the currents to
bfloat16: the same numbers, but for the order of sums in bf16.

Dimensions: T ticks, B batch, P planes, C channels, H and W board, L columns for legal actions, V
outputs of the value head, X images.
"""

import copy
from dataclasses import dataclass
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d
from torch.nn.utils.fusion import fuse_conv_bn_eval

from chess_snn.config import check_choice
from chess_snn.devices import processor_has_bfloat16
from chess_snn.errors import ConfigError
from chess_snn.nets.inference_neurons import InferenceNeurons, choose_neurons
from chess_snn.nets.layers import (
    INPUTS_MULTIPLE,
    Block,
    ConvNorm,
    add_empty_inputs,
    each_tick,
    read_float32,
    read_legal_policy,
    read_policy,
    squares_first,
)
from chess_snn.nets.network import Network

Precision = Literal["fp32", "bf16", "int8"]
PRECISIONS: Final = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.bfloat16}
"""Of currents, and of convolutions but in int8, where weights have 8 bits and spikes are integers;
membranes and readouts are float32 always."""
_LARGEST: Final = 127
"""Of a weight, so that the least and the largest are the same size."""
_PACKED_IMAGES: Final = 128
"""Of a usual batch; others get the same packing."""
_NO_SCALE, _NO_ZERO_POINT = 1.0, 0
"""Of inputs and outputs: neither is quantised."""


class BinaryConv(nn.Module):
    """A convolution for inputs uint8 in {0, 1}; its currents are bfloat16, channels-last."""

    late_bias: Tensor | None = None
    """None: the convolution adds its bias itself."""

    def __init__(self, conv: nn.Conv2d, board_shape: tuple[int, int]) -> None:
        """Round the weights of ``conv``, float32 on the CPU, which is left as it is.

        oneDNN packs weights for the images it will see, (H, W) = ``board_shape``. Without them it
        may pack for others and pack again in every call, as it did with 48 and 96 channels.
        """
        super().__init__()
        weight = conv.weight.detach()
        scale_C = weight.abs().amax((1, 2, 3)).clamp_min(torch.finfo(torch.float32).tiny) / _LARGEST
        rounded = weight.div(scale_C.view(-1, 1, 1, 1)).round().to(torch.int8)
        self._geometry = (list(conv.stride), list(conv.padding), list(conv.dilation), conv.groups)
        assert conv.bias is not None
        self._bias_C = conv.bias.detach().clone()
        self._scale_C = scale_C
        self._zero_points_C = torch.zeros(len(scale_C), dtype=torch.int32)
        self._packed = _onednn().qconv_prepack(
            rounded, scale_C, _NO_SCALE, _NO_ZERO_POINT, *self._geometry,
            [_PACKED_IMAGES, conv.in_channels, *board_shape],
        )

    def forward(self, x_XCHW: Tensor) -> Tensor:
        """Currents bfloat16[X, C, H, W]."""
        dtype = torch.bfloat16 if processor_has_bfloat16() else torch.float32
        currents_XCHW: Tensor = _onednn().qconv2d_pointwise(
            x_XCHW, _NO_SCALE, _NO_ZERO_POINT, self._packed, self._scale_C, self._zero_points_C,
            self._bias_C, *self._geometry, _NO_SCALE, _NO_ZERO_POINT, dtype, "none", [], "",
        )
        return currents_XCHW.bfloat16()


def has_integer_convolutions() -> bool:
    """Whether this torch has them at all; every build for x86 processors does."""
    return hasattr(_onednn(), "qconv2d_pointwise")


def _onednn() -> Any:
    return torch.ops.onednn


@dataclass(frozen=True, slots=True)
class InferenceOutput:
    """What a network that plays says of B positions, from the side to move's view."""

    policy_logits_BA: Tensor
    """float32[B, A], legal or not."""
    value_logits_BV: Tensor
    """float32[B, V]: what :func:`chess_snn.nets.values.read_value` reads the value from."""


class FloatConv(nn.Module):
    """A convolution in the precision of its currents."""

    late_bias: Tensor | None
    """[C], where the neurons that follow are to add it; else the convolution adds it itself."""

    def __init__(self, conv: nn.Conv2d, late_bias: bool) -> None:
        super().__init__()
        self.conv = conv
        self.register_buffer("late_bias", None)
        if late_bias and self.conv.bias is not None:
            self.late_bias, self.conv.bias = self.conv.bias.detach(), None

    def forward(self, x_XCHW: Tensor) -> Tensor:
        """Currents [X, C, H, W], but for a late bias."""
        conv = self.conv
        if x_XCHW.dtype != torch.bfloat16 or x_XCHW.is_cuda or processor_has_bfloat16():
            currents_XCHW: Tensor = conv(x_XCHW)
            return currents_XCHW
        bias_C = None if conv.bias is None else conv.bias.float()
        return conv2d(
            x_XCHW.float(), conv.weight.float(), bias_C, padding=conv.kernel_size[0] // 2
        ).bfloat16()


FoldedConv = FloatConv | BinaryConv
"""A convolution with its normalisation folded into weights and bias."""


class InferenceNetwork(nn.Module):
    """What :func:`freeze` makes of a network. The same spikes, in fewer passes over memory.

    What only training asks for, the plies left, it cannot say. All that comes from weights is a
    parameter or a buffer, but for what oneDNN packs: ``load_state_dict`` makes another network.
    """

    def __init__(
        self, network: Network, precision: Precision, neurons: InferenceNeurons,
        device: torch.device,
    ) -> None:
        super().__init__()
        self.spec, self.config = network.spec, network.config
        self.precision: Precision = precision
        self.dtype = PRECISIONS[precision]
        self.neurons = neurons
        # Folded in float32, rounded after.
        source = copy.deepcopy(network).eval().requires_grad_(False).float()
        add_empty_inputs(source.stem.conv, INPUTS_MULTIPLE[device.type])
        self.num_planes = source.stem.conv.in_channels
        """Planes of the input: those of the game, and empty ones."""
        policy, value = source.policy, source.value
        late_bias = neurons.adds_bias_for_nothing

        def fold(layer: ConvNorm, late_bias: bool = late_bias) -> FoldedConv:
            conv = fuse_conv_bn_eval(layer.conv, layer.norm)
            if precision == "int8":
                return BinaryConv(conv, self.spec.board_shape)
            return FloatConv(conv, late_bias)

        self.stem = fold(source.stem, late_bias=False)
        blocks = [block for block in source.blocks if isinstance(block, Block)]
        self.convs1 = nn.ModuleList(fold(block.conv1) for block in blocks)
        self.convs2 = nn.ModuleList(fold(block.conv2) for block in blocks)
        self.policy_conv, self.value_conv = fold(policy.conv), fold(value.conv)
        self.value_hidden = value.hidden
        self.to(device=device, dtype=self.dtype, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.policy_readout = policy.readout.to(device)
        self.value_readout = value.readout.to(device)
        self.policy_is_dense = policy.is_dense

    @property
    def input_dtype(self) -> torch.dtype:
        """What planes, and spikes between the layers, are made of."""
        return torch.uint8 if self.precision == "int8" else self.dtype

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self.policy_readout.weight.device

    def has_shape_of(self, other: "InferenceNetwork") -> bool:
        """Whether both differ in their weights alone; False where oneDNN has packed these."""
        return (
            not any(isinstance(layer, BinaryConv) for layer in self.modules())
            and self.state_dict().keys() == other.state_dict().keys()
            and all(
                getattr(self, name) == getattr(other, name)
                for name in ("spec", "config", "precision", "device")
            )
        )

    def forward(self, planes_BPHW: Tensor) -> InferenceOutput:
        """Evaluate planes in {0, 1} of any type, on the network's device."""
        fired_TBCHW = self._trunk(planes_BPHW)
        rate_BCHW = self._policy_rate(fired_TBCHW)
        logits_BA = read_policy(self.policy_readout, rate_BCHW, self.policy_is_dense)
        return InferenceOutput(logits_BA, self._value(fired_TBCHW))

    def answer(
        self, planes_BPHW: Tensor, legal_actions_BL: Tensor, num_legal_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Logits float32[B, L] of the listed actions, -inf behind each list, and value logits.

        Rows of planes beyond the lists (padding) are evaluated and left out of the answer.
        """
        num_rows = len(num_legal_B)
        fired_TBCHW = self._trunk(planes_BPHW)
        legal_logits_BL = read_legal_policy(
            self.policy_readout, self._policy_rate(fired_TBCHW)[:num_rows],
            legal_actions_BL, num_legal_B, self.policy_is_dense,
        )
        return legal_logits_BL, self._value(fired_TBCHW)[:num_rows]

    def _trunk(self, planes_BPHW: Tensor) -> Tensor:
        if (missing := self.num_planes - planes_BPHW.shape[1]) > 0:
            planes_BPHW = nn.functional.pad(planes_BPHW, (0, 0, 0, 0, 0, missing))
        planes = planes_BPHW.to(self.input_dtype, memory_format=torch.channels_last)
        stem_BCHW = self.stem(planes)
        u_TBCHW = stem_BCHW.unsqueeze(0)
        fired_TBCHW = self.neurons.fire_static(stem_BCHW, self.config.ticks)
        for conv1, conv2 in zip(self.convs1, self.convs2, strict=True):
            assert isinstance(conv1, FoldedConv)
            assert isinstance(conv2, FoldedConv)
            inner_TBCHW = self.neurons.fire(each_tick(conv1, fired_TBCHW), conv1.late_bias)
            u_TBCHW, fired_TBCHW = self.neurons.add_and_fire(
                u_TBCHW, each_tick(conv2, inner_TBCHW), conv2.late_bias
            )
        return fired_TBCHW

    def _policy_rate(self, fired_TBCHW: Tensor) -> Tensor:
        conv = self.policy_conv
        return self.neurons.mean_rate(each_tick(conv, fired_TBCHW), conv.late_bias)

    def _value(self, fired_TBCHW: Tensor) -> Tensor:
        conv = self.value_conv
        fired_TBCHW = self.neurons.fire(each_tick(conv, fired_TBCHW), conv.late_bias)
        seen_TBF = squares_first(fired_TBCHW).to(self.dtype)
        return read_float32(
            self.value_readout, self.neurons.mean_rate(self.value_hidden(seen_TBF))
        )


def freeze(
    network: Network, precision: Precision, *, device: torch.device | str = "cpu",
    neurons: InferenceNeurons | None = None,
) -> InferenceNetwork:
    """An inference copy of ``network``, which is left as it is.

    Args:
        network: in training or evaluation mode; running statistics are used either way.
        precision: of convolutions and currents.
        device: where it will run.
        neurons: instead of the device's usual ones (``neurons.kind`` of the result names them).

    Raises:
        ConfigError: an unknown precision, or one that this network or device cannot have.
    """
    check_choice("precision", precision, PRECISIONS)
    device = torch.device(device)
    if precision == "int8":
        _check_int8(network, device)
    if neurons is None:
        neurons = choose_neurons(network.config, device, integer_spikes=precision == "int8")
    return InferenceNetwork(network, precision, neurons, device).eval()


def _check_int8(network: Network, device: torch.device) -> None:
    if not network.config.is_spiking:
        raise ConfigError(
            'precision "int8" is for spikes, and this network has none (net.activation = "relu"); '
            'use "bf16"'
        )
    if device.type != "cpu" or not has_integer_convolutions():
        raise ConfigError(
            f'precision "int8" runs on CPUs whose torch has oneDNN, not on {device}; use "bf16"'
        )
