"""Pictures of results as SVG: two campaigns, two players, ratings on the ladder."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from chess_snn.campaign.strength.measured_points import MEASURES, Measure, Milestone
from chess_snn.evaluation.comparison import Comparison
from chess_snn.evaluation.ladder.adaptive import LadderRating
from chess_snn.evaluation.ladder.ladder import Ladder

_INK: Final = "#333"
_FAINT: Final = "#bbb"
_COLOURS: Final = ("#3b6ea5", "#c0562f")
_COLOUR: Final = _COLOURS[0]
_TITLE: Final = 'font-size="15" font-weight="bold"'

_POINTS_OF_PAIR: Final = ("0", "½", "1", "1½", "2")
_PROBABILITIES: Final = (0.0, 0.05, 0.5, 0.95, 1.0)
"""Those with a line."""

_LANDMARKS: Final = ("random", "greedy", "minimax:2", "minimax:3", "stockfish@1000")
"""Rungs of the ladder that are named in the picture."""
_ELO_MARGIN: Final = 100.0
"""Above the highest end and below the lowest."""
_LONGEST_NAME: Final = 24
_CAP: Final = 5.0
"""Half the width of an interval's ends."""


@dataclass(frozen=True, slots=True)
class _Panel:
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
            yield _line(self.left, y, self.right, y, _FAINT)
            yield _text(self.left - 5, y + 4, format(value, form), "end")

    def across(self, share: float) -> float:
        """The place at ``share`` of the width."""
        return self.left + (self.right - self.left) * share

    def curve(
        self, points: Iterable[tuple[float, float]], colour: str = _COLOUR,
        more: str = 'stroke-width="2"',
    ) -> str:
        """A line through ``points``, each a share of the width and a level."""
        path = " ".join(f"{self.across(x):.1f},{self.level(y):.1f}" for x, y in points)
        return f'<polyline points="{path}" fill="none" stroke="{colour}" {more}/>'


def campaign_curves_svg(names: Sequence[str], curves: Sequence[Sequence[Milestone]]) -> str:
    """A panel a measure, in each the scores of two campaigns' generations.

    Args:
        names: of the two campaigns.
        curves: their finished iterations.
    """
    parts = [
        _text(20 + 300 * k, 24, name, "start", f'fill="{_COLOURS[k]}"')
        for k, name in enumerate(names)
    ]
    for place, measure in enumerate(MEASURES):
        left = 50 + place * 310
        parts += _measure_panel(_Panel(left, left + 260, 60, 270), measure, curves)
    return _picture(960, 320, parts)


def _measure_panel(
    panel: _Panel, measure: Measure, curves: Sequence[Sequence[Milestone]]
) -> Iterator[str]:
    most = max((m.measured(measure) for curve in curves for m in curve), default=0.0) or 1.0
    yield from panel.lines((0.0, 0.5, 1.0), "g")
    yield _text(panel.across(0.5), panel.bottom + 34, f"score by {measure}")
    yield _text(panel.right, panel.bottom + 18, f"{most:,.0f}", "end")
    for curve, colour in zip(curves, _COLOURS, strict=True):
        points = ((m.measured(measure) / most, m.score) for m in curve if m.score is not None)
        yield panel.curve(points, colour)


def comparison_svg(comparison: Comparison) -> str:
    """Two players: how many pairs of games ended how, and the probability that one is better."""
    result = comparison.result
    return _picture(760, 340, [
        _text(20, 24, f"{result.player_a} against {result.player_b}", "start", _TITLE),
        *_pair_bars(comparison, _Panel(60, 330, 70, 290)),
        *_superiority(comparison, _Panel(420, 730, 70, 290)),
    ])


def _pair_bars(comparison: Comparison, panel: _Panel) -> Iterator[str]:
    """One bar for each score that a pair of games can have."""
    counts, most = comparison.counts.tolist(), max(1, int(comparison.counts.max()))
    step = (panel.right - panel.left) / len(counts)
    yield _text(panel.left, 52, "pairs of games by points of the first", "start")
    for index, (count, points) in enumerate(zip(counts, _POINTS_OF_PAIR, strict=True)):
        height = (panel.bottom - panel.top - 16) * count / most
        x = panel.left + step * (index + 0.5)
        yield (
            f'<rect x="{x - 0.35 * step:.1f}" y="{panel.bottom - height:.1f}" '
            f'width="{0.7 * step:.1f}" height="{height:.1f}" fill="{_COLOUR}"/>'
        )
        yield _text(x, panel.bottom - height - 5, str(count))
        yield _text(x, panel.bottom + 18, points)
    yield _line(panel.left, panel.bottom, panel.right, panel.bottom, _INK)


def _superiority(comparison: Comparison, panel: _Panel) -> Iterator[str]:
    """What the probability was after fewer pairs."""
    last = max(1, int(comparison.counts.sum()))
    yield _text(
        panel.left, 52, f"probability that the first is better: {comparison.superiority:.1%}",
        "start",
    )
    yield from panel.lines(_PROBABILITIES, ".0%")
    points = zip(comparison.pairs / last, comparison.superiority_by_pairs, strict=True)
    yield panel.curve([(0.0, 0.5), *points])
    yield _text(panel.left, panel.bottom + 18, "0")
    yield _text(panel.right, panel.bottom + 18, f"{last} pairs")


def ladder_svg(ladder: Ladder, ratings: Sequence[LadderRating]) -> str:
    """``ratings`` with their intervals, in their order, beside well-known rungs of the ladder.

    An end that is unbounded leaves the picture.
    """
    ends = [
        end for rated in ratings
        for end in (rated.rating.elo.value, rated.rating.elo.low, rated.rating.elo.high)
        if math.isfinite(end)
    ]
    low, high = min(ends) - _ELO_MARGIN, max(ends) + _ELO_MARGIN
    panel = _Panel(60, 640, 50, 350, low, high)
    return _picture(760, 420, [
        _text(20, 24, "Elo on the ladder (random = 0), 95 % intervals", "start", _TITLE),
        *_elo_axis(ladder, panel),
        *_ratings(ratings, panel),
    ])


def _elo_axis(ladder: Ladder, panel: _Panel) -> Iterator[str]:
    low, high = panel.low, panel.high
    step = 10.0 ** math.floor(math.log10(high - low))
    step = step if (high - low) / step >= 4 else step / 4
    numbers = range(math.ceil(low / step), math.floor(high / step) + 1)
    yield from panel.lines((number * step for number in numbers), ".0f")
    for rung in ladder.rungs:
        if rung.player in _LANDMARKS and low <= rung.elo <= high:
            y = panel.level(rung.elo)
            yield _line(panel.left, y, panel.right, y, _FAINT)
            yield _text(panel.right + 6, y + 4, f"{rung.player} {rung.elo:.0f}", "start")
    yield _line(panel.left, panel.top, panel.left, panel.bottom, _INK)
    yield _line(panel.left, panel.bottom, panel.right, panel.bottom, _INK)


def _ratings(ratings: Sequence[LadderRating], panel: _Panel) -> Iterator[str]:
    middles = []
    for place, rated in enumerate(ratings):
        share = (place + 0.5) / len(ratings)
        elo, name = rated.rating.elo, rated.rating.player
        middles.append((share, elo.value))
        x, y = panel.across(share), panel.level(elo.value)
        bottom, top = panel.level(max(elo.low, panel.low)), panel.level(min(elo.high, panel.high))
        yield _line(x, bottom, x, top, _COLOUR)
        for end, end_y in ((elo.low, bottom), (elo.high, top)):
            if math.isfinite(end):
                yield _line(x - _CAP, end_y, x + _CAP, end_y, _COLOUR)
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_COLOUR}"/>'
        mark = "~" if rated.approximate else ""
        yield _text(x + 8, y + 4, f"{mark}{elo.value:.0f}", "start")
        short = name if len(name) <= _LONGEST_NAME else f"…{name[-_LONGEST_NAME + 1:]}"
        below = panel.bottom + 16
        turn = f'transform="rotate(-20 {x:.1f} {below})"'
        yield _text(x, below, short, "end" if len(ratings) > 1 else "middle", turn)
    if len(middles) > 1:
        yield panel.curve(middles, more='stroke-opacity="0.4"')


def _picture(width: int, height: int, parts: Iterable[str]) -> str:
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12" '
        f'fill="{_INK}">',
        f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>",
    ]) + "\n"


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
    )
