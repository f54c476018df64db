"""From bitboards to the network's input, on the device."""

import torch
from torch import Tensor

_BITS_A_BYTE = 8


def expand_planes(words_BP: Tensor, board_shape: tuple[int, int]) -> Tensor:
    """Planes uint8[B, P, H, W] in {0, 1} of ``words_BP``, on its device.

    Args:
        words_BP: int64[B, P]: the bits of ``uint64`` bitplanes (``array.view(np.int64)``); bit s is
            square s = row * W + column.
        board_shape: (H, W), at most 64 squares.
    """
    height, width = board_shape
    # Bytes of a word come least significant first on every platform torch runs on, so bit k of
    # byte j is square 8 j + k; bytes are expanded eight times as fast as 64-bit words.
    batch, planes = words_BP.shape
    bytes_BPK1 = words_BP.contiguous().view(torch.uint8).view(batch, planes, -1, 1)
    masks = torch.tensor([1 << bit for bit in range(_BITS_A_BYTE)], dtype=torch.uint8)
    squares_BPS = (bytes_BPK1 & masks.to(words_BP.device)).ne(0).flatten(2)[..., : height * width]
    return squares_BPS.reshape(batch, planes, height, width).to(torch.uint8)
