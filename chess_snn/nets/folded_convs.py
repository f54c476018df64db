"""Convolutions with their normalisation folded in, of networks that play.

Dimensions: C channels, H and W board, X images, F weights of a channel, S squares.
"""

import platform
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, unfold

from chess_snn.devices import processor_has_bfloat16

_LARGEST: Final = 127
"""Largest weight, so that the least and the largest are the same size."""
_PACKED_IMAGES: Final = 128
"""Images of a usual batch; others get the same packing."""
_NO_SCALE, _NO_ZERO_POINT = 1.0, 0
"""Scale of inputs and outputs: neither is quantised."""


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
    """A convolution for inputs uint8; its currents are bfloat16, channels-last.

    Sums are exact. Where torch has no products of integers, they are multiplied as float32, whose
    whole numbers are exact up to 2**24, or as float64: slower, and the same to the bit.
    """

    late_bias: Tensor | None = None
    """None: the convolution adds its bias itself."""

    def __init__(self, conv: nn.Conv2d, board_shape: tuple[int, int]) -> None:
        """Round the weights of ``conv``, float32 on the CPU, which is left as it is.

        oneDNN packs weights for the images it will see, (H, W) = ``board_shape``. Without them it
        may pack for others and pack again in every call, as it did with 48 and 96 channels.
        """
        super().__init__()
        rounded, self._scale_C = round_weights(conv.weight.detach())
        self._geometry = (list(conv.stride), list(conv.padding), list(conv.dilation), conv.groups)
        self._kernel_size = conv.kernel_size
        assert conv.bias is not None
        self._bias_C = conv.bias.detach().clone()
        self._zero_points_C = torch.zeros(len(rounded), dtype=torch.int32)
        self._packed: Any = None
        if has_integer_convolutions():
            self._packed = _onednn().qconv_prepack(
                rounded, self._scale_C, _NO_SCALE, _NO_ZERO_POINT, *self._geometry,
                [_PACKED_IMAGES, conv.in_channels, *board_shape],
            )
        else:
            rounded_CF = rounded.flatten(1).double()
            largest = torch.iinfo(torch.uint8).max * rounded_CF.abs().sum(1).max()
            self._rounded_CF = rounded_CF.float() if largest <= 2**24 else rounded_CF

    def forward(self, x_XCHW: Tensor) -> Tensor:
        """Currents bfloat16[X, C, H, W]."""
        if self._packed is None:
            return self._multiply_floats(x_XCHW)
        dtype = torch.bfloat16 if processor_has_bfloat16() else torch.float32
        currents_XCHW: Tensor = _onednn().qconv2d_pointwise(
            x_XCHW, _NO_SCALE, _NO_ZERO_POINT, self._packed, self._scale_C, self._zero_points_C,
            self._bias_C, *self._geometry, _NO_SCALE, _NO_ZERO_POINT, dtype, "none", [], "",
        )
        return currents_XCHW.bfloat16()

    def _multiply_floats(self, x_XCHW: Tensor) -> Tensor:
        """Multiply matrices: a convolution may transform both operands, which is not exact."""
        batch, _, height, width = x_XCHW.shape
        windows_XFS = unfold(
            x_XCHW.to(self._rounded_CF.dtype), self._kernel_size, padding=self._kernel_size[0] // 2
        )
        sums_XSC = (windows_XFS.transpose(1, 2) @ self._rounded_CF.T).float()
        currents_XSC = sums_XSC.mul_(self._scale_C).add_(self._bias_C).bfloat16()
        return currents_XSC.view(batch, height, width, -1).permute(0, 3, 1, 2)


def has_integer_convolutions() -> bool:
    """Whether torch has them for this processor: those of oneDNN, for x86."""
    is_x86 = platform.machine() in ("x86_64", "AMD64")
    return is_x86 and hasattr(_onednn(), "qconv2d_pointwise")


def _onednn() -> Any:
    return torch.ops.onednn
