"""A picture of one evaluation: which neurons spike in which tick, and their membranes.

Each layer of neurons is a panel, each tick a tile in it::

    +----------------+
    |  ..  .   ..    |   raster: a row a channel, a column a square; the value head's last layer
    | .   ... .   .  |   has one row, a column a neuron
    +-------+--------+
    | board | curve  |   spikes by square, and how many neurons have which membrane
    +-------+--------+

Spikes that stand beside each other are one stroke, and all of a tile and a level are one path, so
the picture stays small.

Dimensions: R rows, X columns, T ticks, C channels, H and W board, F features.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from chess_snn import nets
from chess_snn.report.plots import TITLE, picture, text
from chess_snn.types import BoolArray, Float32Array, UInt8Array

MOST_CHANNELS: Final = 64
"""Rows of a raster; further channels are left out of it, but not of board, curve and rate."""

_GROUND, _CURVE, _THRESHOLD = "#f4f2ec", "#d9b27c", "#b4432e"
_LIGHTEST, _DARKEST = (163, 196, 231), (18, 52, 98)
"""Red, green and blue of a single spike and of `levels` spikes."""
_WIDTH: Final = 128
"""Width of a raster, whatever its columns are."""
_LEAST_HEIGHT, _ROW_HEIGHT = 16, 2
_BOARD: Final = 48
"""Height and width of a board, and height of a curve."""
_SHADES: Final = 6
"""Shades of a board's squares."""
_GAP, _MARGIN, _HEAD, _LABEL = 8, 20, 66, 18
_FONT_SIZE: Final = 11
_PAGE_WIDTH: Final = 1000
_BIN_WIDTH: Final = 2
_LOWEST_MEMBRANE: Final = -2.0
"""Left end of a curve, in thresholds; membranes beyond an end count there, and may be more than
the curve's height, which is that of the other places."""
_MOST_SWATCHES: Final = 8
_CHESS_ROWS: Final = 8

_LEGEND: Final = (
    "Raster: a row is a channel, a column a square. Board: spikes by square, from the fewest to "
    "the most, seen by the side to move.",
    "Curve: neurons by their membrane, which spike from the red line on.",
)


def raster_svg(activity: dict[str, nets.LayerActivity], *, levels: int, title: str) -> str:
    """The SVG of what each layer of neurons did for one position.

    Args:
        activity: of one position, from :func:`chess_snn.nets.record_activity`; a ReLU baseline,
            which has no layers, gives the title alone.
        levels: most spikes of a neuron in a tick (``NetConfig.most_spikes``); 1 for leaky neurons.
        title: above the picture.
    """
    ticks = max((len(layer.spikes_TX) for layer in activity.values()), default=1)
    panel_width = ticks * (_WIDTH + _GAP) + 2 * _GAP
    columns = max(1, (_PAGE_WIDTH - _MARGIN) // panel_width)
    parts, top = [], _HEAD
    layers = list(activity.items())
    for first in range(0, len(layers), columns):
        row = layers[first : first + columns]
        for place, (name, layer) in enumerate(row):
            left = _MARGIN + place * panel_width
            parts.append(_at(left, top, _panel(name, layer, levels)))
        top += max(_height(layer) for _, layer in row) + _LABEL + 2 * _GAP
    width = max(_PAGE_WIDTH, panel_width + 2 * _MARGIN)
    head = [
        text(_MARGIN, 22, title, "start", TITLE),
        *(text(_MARGIN, 40 + 15 * k, line, "start") for k, line in enumerate(_LEGEND)),
        *_swatches(width, levels),
    ]
    return picture(width, top, [*head, *parts], _FONT_SIZE)


def _panel(name: str, layer: nets.LayerActivity, levels: int) -> str:
    spikes_TX = layer.spikes_TX
    rate = spikes_TX.mean() / levels
    parts = [text(0, 11, f"{name}  {rate:.1%}", "start")]
    bins = _histograms(layer.membranes_TX, levels)
    most = max(1, bins[:, 1:-1].max())
    for tick, spikes_X in enumerate(spikes_TX):
        rows = _as_rows(spikes_X)
        height = _raster_height(rows)
        tile = _raster(rows, height, levels)
        below = height + _GAP // 2
        if spikes_X.ndim == 3:
            tile += _at(0, below, _board(spikes_X))
        tile += _at(_BOARD + _GAP, below, _curve(bins[tick] / most, levels))
        if len(spikes_TX) > 1:
            tile += text(0, below + _BOARD + 12, f"tick {tick + 1}", "start")
        parts.append(_at(tick * (_WIDTH + _GAP), _LABEL, tile))
    return "".join(parts)


def _height(layer: nets.LayerActivity) -> int:
    """Return the height of the tiles of a layer, with the numbers of its ticks."""
    below = _LABEL if len(layer.spikes_TX) > 1 else 0
    return _raster_height(_as_rows(layer.spikes_TX[0])) + _GAP // 2 + _BOARD + below


def _as_rows(spikes_X: UInt8Array) -> UInt8Array:
    """uint8[R, X] of uint8[C, H, W] or uint8[F]."""
    rows = spikes_X.reshape(len(spikes_X), -1)[:MOST_CHANNELS]
    return rows if spikes_X.ndim == 3 else rows.T


def _raster_height(rows_RX: UInt8Array) -> int:
    return max(_LEAST_HEIGHT, _ROW_HEIGHT * len(rows_RX))


def _raster(rows_RX: UInt8Array, height: int, levels: int) -> str:
    strokes = [
        (_colour(level / levels), rows_RX == level) for level in range(1, int(rows_RX.max()) + 1)
    ]
    return _cells(strokes, _WIDTH, height)


def _board(spikes_CHW: UInt8Array) -> str:
    """Spikes by square in shades; of chess the first row, rank 1, is at the bottom."""
    sums_HW = spikes_CHW.sum(0, dtype=np.int64)
    low, high = int(sums_HW.min()), int(sums_HW.max())
    shades_HW = 1 + (sums_HW - low) * (_SHADES - 1) // max(1, high - low)
    if len(shades_HW) == _CHESS_ROWS:
        shades_HW = shades_HW[::-1]
    strokes = [
        (_colour(shade / _SHADES), shades_HW == shade) for shade in range(1, _SHADES + 1)
    ]
    return _cells(strokes, _BOARD, _BOARD)


def _cells(strokes: list[tuple[str, BoolArray]], width: float, height: float) -> str:
    """Cells of one colour each on a rectangle that they fill."""
    ground = f'<rect width="{width}" height="{height}" fill="{_GROUND}"/>'
    if not strokes:
        return ground
    num_rows, num_columns = strokes[0][1].shape
    scale = f"scale({width / num_columns:g} {height / num_rows:g})"
    paths = "".join(
        f'<path stroke="{colour}" d="M0 0{_runs(mask)}"/>' for colour, mask in strokes
        if mask.any()
    )
    return (
        f'{ground}<g transform="{scale} translate(0 .5)" fill="none" '
        f'shape-rendering="crispEdges">{paths}</g>'
    )


def _runs(mask_RX: BoolArray) -> str:
    """Horizontal strokes over the cells that are set, each relative to the end of the last."""
    edges = np.diff(np.pad(mask_RX, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    ends = np.nonzero(edges == -1)[1]
    path, x, y = [], 0, 0
    for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
        path.append(f"m{start - x} {row - y}h{end - start}")
        x, y = end, row
    return "".join(path)


def _histograms(membranes_TX: Float32Array, levels: int) -> np.ndarray:
    """int64[T, bins]: how many neurons of the layer have which membrane in each tick."""
    highest = levels + 1.0
    num_bins = (_WIDTH - _BOARD - _GAP) // _BIN_WIDTH
    return np.stack([
        np.histogram(
            np.clip(membrane_X, _LOWEST_MEMBRANE, highest), num_bins, (_LOWEST_MEMBRANE, highest)
        )[0]
        for membrane_X in membranes_TX
    ])


def _curve(shares: np.ndarray, levels: int) -> str:
    """Bars, each a share of the height, and a line where a neuron begins to spike."""
    width = _BIN_WIDTH * len(shares)
    steps, before = [], 0
    for share in shares:
        height = min(_BOARD, math.ceil(_BOARD * share))
        steps.append(f"v{before - height}h{_BIN_WIDTH}")
        before = height
    least = 1.0 if levels == 1 else 0.5
    x = width * (least - _LOWEST_MEMBRANE) / (levels + 1.0 - _LOWEST_MEMBRANE)
    return (
        f'<path fill="{_CURVE}" d="M0 {_BOARD}{"".join(steps)}v{before}z"/>'
        f'<path stroke="{_THRESHOLD}" d="M{x:.1f} 0v{_BOARD}"/>'
    )


def _swatches(width: int, levels: int) -> Iterator[str]:
    """The colours of the numbers of spikes, at the top right."""
    if levels == 1:
        return
    shown = range(1, levels + 1, math.ceil(levels / _MOST_SWATCHES))
    left = width - _MARGIN - 26 * len(shown)
    yield text(left - 6, 22, "spikes", "end")
    for place, level in enumerate(shown):
        x = left + 26 * place
        yield f'<rect x="{x}" y="13" width="10" height="10" fill="{_colour(level / levels)}"/>'
        yield text(x + 12, 22, str(level), "start")


def _colour(share: float) -> str:
    """Return a colour from the lightest, just above 0, to the darkest at 1."""
    mixed = (
        round(light + (dark - light) * share)
        for light, dark in zip(_LIGHTEST, _DARKEST, strict=True)
    )
    return "#" + "".join(f"{number:02x}" for number in mixed)


def _at(x: float, y: float, part: str) -> str:
    return f'<g transform="translate({x:g} {y:g})">{part}</g>'
