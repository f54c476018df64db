"""Convolutions with their normalisation folded in, of networks that play.

Dimensions: C channels, H and W board, X images.
"""

from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from chess_snn.devices import processor_has_bfloat16

_LARGEST: Final = 127
"""Of a weight, so that the least and the largest are the same size."""
_PACKED_IMAGES: Final = 128
"""Of a usual batch; others get the same packing."""
_NO_SCALE, _NO_ZERO_POINT = 1.0, 0
"""Of inputs and outputs: neither is quantised."""


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


def round_weights(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weights int8 [C, ...] of ``weight`` float32, and the size of a step of each output channel.

    The largest weight of a channel is 127 steps, positive or negative.
    """
    tiny = torch.finfo(torch.float32).tiny
    scale_C = weight.abs().amax((1, 2, 3)).clamp_min(tiny) / _LARGEST
    return weight.div(scale_C.view(-1, 1, 1, 1)).round().to(torch.int8), scale_C


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
        rounded, scale_C = round_weights(conv.weight.detach())
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
