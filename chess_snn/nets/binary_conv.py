"""Convolutions of spikes with weights of 8 bits, for CPUs.

Spikes and planes are 0 and 1, so they are 8-bit integers as they stand: of such a convolution
nothing is rounded but the weights, to 127 steps of each output channel's largest. Products are
summed in 32-bit integers, exactly and in any order. On processors with integer dot products
(AVX-512 VNNI, AMX) that is about twice as fast as bfloat16.

Dimensions: X images, C channels, H and W board.
"""

from typing import Any, Final

import torch
from torch import Tensor, nn

_LARGEST: Final = 127
"""Of a weight, so that the least and the largest are the same size."""
_NO_SCALE, _NO_ZERO_POINT = 1.0, 0
"""Of inputs and outputs: neither is quantised."""


class BinaryConv(nn.Module):
    """A convolution for inputs uint8 in {0, 1}; its currents are bfloat16, channels-last."""

    late_bias: Tensor | None = None
    """None: the convolution adds its bias itself."""

    def __init__(self, conv: nn.Conv2d) -> None:
        """Round the weights of ``conv``, float32 on the CPU, which is left as it is."""
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
            rounded, scale_C, _NO_SCALE, _NO_ZERO_POINT, *self._geometry, None
        )

    def forward(self, x_XCHW: Tensor) -> Tensor:
        """Currents bfloat16[X, C, H, W]."""
        currents_XCHW: Tensor = _onednn().qconv2d_pointwise(
            x_XCHW, _NO_SCALE, _NO_ZERO_POINT, self._packed, self._scale_C, self._zero_points_C,
            self._bias_C, *self._geometry, _NO_SCALE, _NO_ZERO_POINT, torch.bfloat16,
            "none", [], "",
        )
        return currents_XCHW


def has_integer_convolutions() -> bool:
    """Whether this torch has them at all; every build for x86 processors does."""
    return hasattr(_onednn(), "qconv2d_pointwise")


def _onednn() -> Any:
    return torch.ops.onednn
