"""Parts of pictures (SVG): panels, lines, texts and intervals."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Final

from chess_snn.evaluation.ratings.result import Estimate

INK: Final = "#333"
FAINT: Final = "#bbb"
COLOURS: Final = ("#3b6ea5", "#c0562f", "#4f8f4a", "#8a5aa8", "#a08a2c", "#5b5b5b")
TITLE: Final = 'font-size="15" font-weight="bold"'
_CAP: Final = 5.0
"""Half the width of an interval's ends."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A rectangle of a picture in which levels from ``low`` to ``high`` are drawn upwards."""

    left: float
    right: float
    top: float
    bottom: float
    low: float = 0.0
    high: float = 1.0

    def level(self, value: float) -> float:
        """The height of ``value`` in the picture."""
        share = (value - self.low) / (self.high - self.low)
        return self.bottom - (self.bottom - self.top) * share

    def lines(self, levels: Iterable[float], form: str) -> Iterator[str]:
        """A line across the panel at each level, with its label in the format ``form``."""
        for value in levels:
            y = self.level(value)
            yield line(self.left, y, self.right, y, FAINT)
            yield text(self.left - 5, y + 4, format(value, form), "end")

    def across(self, share: float) -> float:
        """The place at ``share`` of the width."""
        return self.left + (self.right - self.left) * share

    def round_levels(self) -> Iterator[float]:
        """Some round numbers from :attr:`low` to :attr:`high`."""
        step = 10.0 ** math.floor(math.log10(self.high - self.low))
        step = step if (self.high - self.low) / step >= 4 else step / 4
        numbers = range(math.ceil(self.low / step), math.floor(self.high / step) + 1)
        return (number * step for number in numbers)

    def axes(self) -> Iterator[str]:
        """The left and the lower edge."""
        yield line(self.left, self.top, self.left, self.bottom, INK)
        yield line(self.left, self.bottom, self.right, self.bottom, INK)


def interval(
    panel: Panel, x: float, estimate: Estimate, colour: str, title: str = ""
) -> Iterator[str]:
    """``estimate`` as a dot and a line through it; an unbounded end leaves the panel.

    ``title`` is shown where the pointer is on the dot.
    """
    y = panel.level(estimate.value)
    bottom = panel.level(max(estimate.low, panel.low))
    top = panel.level(min(estimate.high, panel.high))
    yield line(x, bottom, x, top, colour)
    for end, end_y in ((estimate.low, bottom), (estimate.high, top)):
        if math.isfinite(end):
            yield line(x - _CAP, end_y, x + _CAP, end_y, colour)
    dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"'
    yield f"{dot}><title>{escape(title)}</title></circle>" if title else f"{dot}/>"


def picture(width: int, height: int, parts: Iterable[str], font_size: int = 12) -> str:
    """The text of a file with ``parts``, in pixels."""
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="{font_size}" '
        f'fill="{INK}">',
        f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>",
    ]) + "\n"


def text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
    """``words``, escaped, that begin, end or have their middle at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    """A line between two places."""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
    )
