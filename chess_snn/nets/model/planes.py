"""Makes the network's input of bitboards, on the device.

Dimensions: B positions, P planes, S = H * W squares.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from chess_snn.jit import kernel
from chess_snn.types import UInt64Array

_BITS_A_BYTE = 8
_BYTES_A_WORD = 8
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Types by their size in bytes: numpy has no bfloat16, and a pattern of bits needs none."""
_LOW_BIT = np.uint64(1)


def expand_planes(words_BP: Tensor, board_shape: tuple[int, int], dtype: torch.dtype) -> Tensor:
    """Planes [B, P, H, W] in {0, 1} of ``words_BP``, on its device, in channels-last memory.

    Args:
        words_BP: int64[B, P]: the bits of ``uint64`` bitplanes (``array.view(np.int64)``); bit s is
            square s = row * W + column.
        board_shape: (H, W), at most 64 squares.
        dtype: of the result.
    """
    height, width = board_shape
    spread = spread_compiled if words_BP.device.type == "cpu" else spread_by_bytes
    squares_BSP = spread(words_BP, height * width, dtype)
    batch, _, planes = squares_BSP.shape
    return squares_BSP.view(batch, height, width, planes).permute(0, 3, 1, 2)


def network_input(planes: UInt64Array, board_shape: tuple[int, int]) -> Tensor:
    """The same as float32[B, P, H, W] on the CPU, of uint64[B, P] as ``Game.planes`` gives them."""
    return expand_planes(torch.from_numpy(planes.view(np.int64)), board_shape, torch.float32)


def spread_by_bytes(words_BP: Tensor, num_squares: int, dtype: torch.dtype) -> Tensor:
    """Squares [B, S, P] of int64[B, P], on any device."""
    # Bytes of a word come least significant first on every platform torch runs on, so bit k of
    # byte j is square 8 j + k; bytes are expanded eight times as fast as 64-bit words.
    batch, planes = words_BP.shape
    bytes_BPJ = words_BP.contiguous().view(torch.uint8).view(batch, planes, _BYTES_A_WORD)
    bytes_BJ1P = bytes_BPJ.transpose(1, 2).unsqueeze(2)
    # Made on the device: a captured graph may not copy from ordinary memory.
    shifts_K1 = torch.arange(_BITS_A_BYTE, dtype=torch.uint8, device=words_BP.device).unsqueeze(1)
    bits_BSP = ((bytes_BJ1P >> shifts_K1) & 1).flatten(1, 2)
    return bits_BSP[:, :num_squares].to(dtype)


def spread_compiled(words_BP: Tensor, num_squares: int, dtype: torch.dtype) -> Tensor:
    """The same on the CPU, in one pass over the result."""
    squares_BSP = torch.empty((len(words_BP), num_squares, words_BP.shape[1]), dtype=dtype)
    same_size = _INTEGERS[dtype.itemsize]
    zero, one = torch.tensor([0, 1], dtype=dtype).view(same_size).numpy()
    words = words_BP.contiguous().numpy().view(np.uint64)
    _spread_bits(words, zero, one, squares_BSP.view(same_size).numpy())
    return squares_BSP


@kernel
def _spread_bits(
    words: UInt64Array, zero: np.integer[Any], one: np.integer[Any], spread: np.ndarray
) -> None:
    """Fill ``spread`` int[B, S, P] with ``one`` where bit s of ``words`` uint64[B, P] is set."""
    batch, squares, planes = spread.shape
    for b in range(batch):
        for square in range(squares):
            shift = np.uint64(square)
            for p in range(planes):
                spread[b, square, p] = one if (words[b, p] >> shift) & _LOW_BIT else zero
