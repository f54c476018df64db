"""A comparison of two players as one SVG: how their pairs of games ended, and who is better."""

from collections.abc import Iterator
from html import escape
from typing import Final

from chess_snn.evaluation import Comparison

_WIDTH: Final = 760
_HEIGHT: Final = 340
_TOP: Final = 70
_BOTTOM: Final = 290
_BARS: Final = (60, 330)
"""Left and right end of the bars' panel."""
_CURVE: Final = (420, 730)
"""Of the curve's."""
_POINTS_OF_PAIR: Final = ("0", "½", "1", "1½", "2")
_SHARES: Final = (0.0, 0.05, 0.5, 0.95, 1.0)
"""Probabilities with a line."""
_INK: Final = "#333"
_FAINT: Final = "#bbb"
_COLOUR: Final = "#3b6ea5"


def comparison_svg(comparison: Comparison) -> str:
    """The picture of a comparison: pairs by points, and the curve of superiority over pairs."""
    result = comparison.result
    title = f"{result.player_a} against {result.player_b}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12" '
        f'fill="{_INK}">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(20, 24, title, "start", 'font-size="15" font-weight="bold"'),
        *_bars(comparison),
        *_curve(comparison),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _bars(comparison: Comparison) -> Iterator[str]:
    """One bar for each score that a pair of games can have."""
    left, right = _BARS
    counts, most = comparison.counts.tolist(), max(1, int(comparison.counts.max()))
    step = (right - left) / len(counts)
    yield _text(left, 52, "pairs of games by points of the first", "start")
    for index, (count, points) in enumerate(zip(counts, _POINTS_OF_PAIR, strict=True)):
        height = (_BOTTOM - _TOP - 16) * count / most
        x = left + step * (index + 0.5)
        yield (
            f'<rect x="{x - 0.35 * step:.1f}" y="{_BOTTOM - height:.1f}" '
            f'width="{0.7 * step:.1f}" height="{height:.1f}" fill="{_COLOUR}"/>'
        )
        yield _text(x, _BOTTOM - height - 5, str(count))
        yield _text(x, _BOTTOM + 18, points)
    yield _line(left, _BOTTOM, right, _BOTTOM, _INK)


def _curve(comparison: Comparison) -> Iterator[str]:
    """What would have been said after fewer pairs."""
    left, right = _CURVE
    last = max(1, int(comparison.counts.sum()))
    told = f"probability that the first is better: {comparison.superiority:.1%}"
    yield _text(left, 52, told, "start")
    for share in _SHARES:
        yield _line(left, _level(share), right, _level(share), _FAINT)
        yield _text(left - 6, _level(share) + 4, f"{share:.0%}", "end")
    points = [(left, _level(0.5))] + [
        (left + (right - left) * pairs / last, _level(share))
        for pairs, share in zip(
            comparison.pairs.tolist(), comparison.superiority_by_pairs.tolist(), strict=True
        )
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{path}" fill="none" stroke="{_COLOUR}" stroke-width="2"/>'
    yield _text(left, _BOTTOM + 18, "0")
    yield _text(right, _BOTTOM + 18, f"{last} pairs")


def _level(share: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * share


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
    )
