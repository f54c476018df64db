"""Curves as inline SVG, in the colours of the page's style sheet.

A chart is a figure: caption, legend, picture, and a line that tells the values at one place. The
page's script changes that line under the pointer or by the arrow keys; without it, and in print,
the line tells the newest values.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from chess_snn.report.markup import element, tag

_WIDTH: Final = 480.0
_HEIGHT: Final = 230.0
_LEFT: Final = 52.0
_RIGHT: Final = 470.0
_TOP: Final = 10.0
_BOTTOM: Final = 204.0
_LINES: Final = 4
"""Levels with a line across, about."""
_MOST_DOTS: Final = 30
"""A curve of more points is a line alone."""
_CAP: Final = 3.0
"""Half the width of an interval's ends."""
_COLOURS: Final = 6
"""Colours of the style sheet, ``s0`` and so on; further curves have them again, in dots."""
_SHARES: Final = "%"
_SI: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True)
class Point:
    """A value, with its 95 % interval if there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One curve of a chart."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves over the same numbers."""

    title: str
    unit: str
    """Unit of the values, in words."""
    series: Sequence[Series]
    form: str = ".3f"
    """Format of a value; one that ends with ``%`` has a scale from 0 to 1."""
    over: str = "iteration"
    """Unit of the horizontal axis."""
    marks: Sequence[float] = ()
    """Numbers with a vertical line, such as new champions."""
    mark_name: str = ""


@dataclass(frozen=True, slots=True)
class _Scale:
    """Map from numbers and values to the picture."""

    first: float
    last: float
    low: float
    high: float

    def x(self, number: float) -> float:
        share = (number - self.first) / ((self.last - self.first) or 1.0)
        return _LEFT + (_RIGHT - _LEFT) * (share if self.last > self.first else 0.5)

    def y(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return _BOTTOM - (_BOTTOM - _TOP) * share


def chart_html(chart: Chart) -> str:
    """The figure; empty where the chart has no point."""
    drawn = [(index, series) for index, series in enumerate(chart.series) if series.points]
    if not drawn:
        return ""
    scale = _scale_of(chart)
    parts = [*_axes(chart, scale)]
    for index, series in drawn:
        parts += _curve(index, series, scale)
    parts.append(f'<line class="rule" y1="{_TOP}" y2="{_BOTTOM}" x1="-9" x2="-9"/>')
    told = [[round(scale.x(number), 1), text] for number, text in _texts(chart)]
    first, last = told[0][1], told[-1][1]
    picture = (
        f'<svg class="chart" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" tabindex="0" '
        f'aria-label="{escape(f"{chart.title}. First {first}. Last {last}.")}" '
        f'data-points="{escape(json.dumps(told, ensure_ascii=False))}">\n'
        + "\n".join(parts) + "\n</svg>"
    )
    legend = "".join(
        tag("span", f'<svg class="key" viewBox="0 0 18 8" aria-hidden="true"><line class="curve '
            f'{_style(index)}" x1="0" x2="18" y1="4" y2="4"/></svg>{escape(series.name)}')
        for index, series in drawn if len(drawn) > 1 or series.name
    )
    if chart.marks:
        legend += tag(
            "span", '<svg class="key" viewBox="0 0 18 8" aria-hidden="true"><line class="mark" '
            f'x1="9" x2="9" y1="0" y2="8"/></svg>{escape(chart.mark_name)}'
        )
    caption = tag(
        "figcaption", element("h3", chart.title) + element("p", f"{chart.unit}, by {chart.over}")
    )
    return tag("figure", "\n".join([
        caption, tag("p", legend, class_="legend"), picture,
        element("p", str(last), class_="told"),
    ]))


def _scale_of(chart: Chart) -> _Scale:
    points = [point for series in chart.series for point in series.points]
    numbers = [point.x for point in points]
    if chart.form.endswith(_SHARES):
        low, high = 0.0, max(point.y for point in points)
        step = _step(high or 1.0)
        return _Scale(min(numbers), max(numbers), low, min(1.0, step * math.ceil(high / step) or 1))
    ends = [
        end for point in points for end in (point.y, point.low, point.high)
        if end is not None and math.isfinite(end)
    ]
    low, high = min(ends), max(ends)
    step = _step((high - low) or abs(high) or 1.0)
    low, high = step * math.floor(low / step), step * math.ceil(high / step)
    return _Scale(min(numbers), max(numbers), low, high if high > low else low + step)


def _step(span: float) -> float:
    """A round number, about a quarter of ``span``."""
    rough = span / _LINES
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)


def _axes(chart: Chart, scale: _Scale) -> Iterator[str]:
    step = _step(scale.high - scale.low)
    for index in range(round((scale.high - scale.low) / step) + 1):
        value = scale.low + index * step
        y = scale.y(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        level = _level(value, chart)
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{level}</text>'
    for mark in chart.marks:
        if scale.first <= mark <= scale.last:
            x = scale.x(mark)
            yield f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_BOTTOM}"/>'
    numbers = dict.fromkeys((scale.first, (scale.first + scale.last) // 2, scale.last))
    for number in numbers:
        anchor = "end" if number == scale.last > scale.first else "middle"
        yield (
            f'<text x="{scale.x(number):.1f}" y="{_BOTTOM + 18}" text-anchor="{anchor}">'
            f"{number:g}</text>"
        )


def _level(value: float, chart: Chart) -> str:
    if chart.form.endswith(_SHARES):
        return f"{100 * value:.3g} %"
    for factor, prefix in _SI:
        if abs(value) >= 10 * factor:
            return f"{value / factor:.4g} {prefix}"
    return f"{value:.4g}"


def _style(index: int) -> str:
    """Classes of a curve and all that belongs to it."""
    return f"s{index % _COLOURS}" + (" again" if index >= _COLOURS else "")


def _curve(index: int, series: Series, scale: _Scale) -> Iterator[str]:
    style = _style(index)
    for point in series.points:
        if point.low is None and point.high is None:
            continue
        x = scale.x(point.x)
        low = scale.y(scale.low if point.low is None else point.low)
        high = scale.y(scale.high if point.high is None else point.high)
        yield (
            f'<path class="interval {style}" d="M{x - _CAP:.1f} {low:.1f}H{x + _CAP:.1f}M{x:.1f} '
            f'{low:.1f}V{high:.1f}M{x - _CAP:.1f} {high:.1f}H{x + _CAP:.1f}"/>'
        )
    path = " ".join(f"{scale.x(point.x):.1f},{scale.y(point.y):.1f}" for point in series.points)
    yield f'<polyline class="curve {style}" points="{path}"/>'
    if len(series.points) <= _MOST_DOTS:
        for point in series.points:
            yield (
                f'<circle class="dot {style}" cx="{scale.x(point.x):.1f}" '
                f'cy="{scale.y(point.y):.1f}" r="3"/>'
            )


def _texts(chart: Chart) -> Iterator[tuple[float, str]]:
    """Return, for each number, the values of all curves in words."""
    by_number: dict[float, list[str]] = {}
    for series in chart.series:
        for point in series.points:
            value = format(point.y, chart.form)
            if point.low is not None or point.high is not None:
                value += f" ({_end(point.low, chart.form)} to {_end(point.high, chart.form)})"
            name = f"{series.name} " if series.name else ""
            by_number.setdefault(point.x, []).append(f"{name}{value}")
    for number in sorted(by_number):
        yield number, f"{chart.over} {number:g}: {'; '.join(by_number[number])}"


def _end(value: float | None, form: str) -> str:
    return "unknown" if value is None else format(value, form)
