"""Bitboards to planes, against Python's own bits."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.nets import expand_planes
from chess_snn.nets.planes import spread_by_bytes

WORDS = st.lists(
    st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3), min_size=1, max_size=4
)


@given(
    WORDS,
    st.sampled_from([(8, 8), (4, 4), (3, 5), (1, 1)]),
    st.sampled_from([torch.uint8, torch.bfloat16, torch.float32, torch.float64]),
)
def test_bit_s_is_row_times_width_plus_column(words, board_shape, dtype):
    height, width = board_shape
    array = np.array(words, dtype=np.uint64)
    tensor = torch.from_numpy(array.view(np.int64))
    planes = expand_planes(tensor, board_shape, dtype)
    squares = [[row * width + column for column in range(width)] for row in range(height)]
    expected = [
        [[[word >> square & 1 for square in row] for row in squares] for word in position]
        for position in words
    ]
    assert planes.dtype == dtype
    assert planes.tolist() == expected
    # What other devices use.
    anywhere = spread_by_bytes(tensor, height * width, dtype)
    assert torch.equal(anywhere, planes.permute(0, 2, 3, 1).flatten(1, 2))


def test_a_slice_of_columns_is_read_in_place():
    array = np.arange(12, dtype=np.uint64).reshape(3, 4)
    words = torch.from_numpy(array.view(np.int64))
    expanded = expand_planes(words, (8, 8), torch.float32)
    assert torch.equal(expand_planes(words[:, 1:3], (8, 8), torch.float32), expanded[:, 1:3])
    assert expanded.is_contiguous(memory_format=torch.channels_last)
