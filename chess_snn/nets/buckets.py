"""Sizes of batches that a GPU is prepared for: any batch is padded to the next one.

A captured graph takes one size only, so there are few sizes; they lie close enough together that at
most a third of a large batch is padding.
"""

from typing import Final

ROW_SIZES: Final = (32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
"""Positions of a batch."""
COLUMN_SIZES: Final = (64, 128)
"""Legal actions of a position; most of chess needs the first. The game's own limit comes behind."""


def row_bucket(num_rows: int) -> int:
    """The smallest prepared number of rows that holds ``num_rows``, at most the largest."""
    return next(size for size in ROW_SIZES if size >= num_rows)


def column_bucket(num_columns: int, max_legal: int) -> int:
    """The smallest prepared number of columns that holds ``num_columns``."""
    fitting = (size for size in COLUMN_SIZES if num_columns <= size < max_legal)
    return next(fitting, max_legal)
