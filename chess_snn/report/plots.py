"""Pictures of results as SVG: two campaigns, two players, ratings on the ladder.

And parts of pictures for every module that draws: panels, lines, texts and intervals.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from chess_snn.campaign.strength.measured_points import MEASURES, Measure, Milestone
from chess_snn.evaluation.comparison import Comparison
from chess_snn.evaluation.ladder.adaptive import LadderRating
from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.evaluation.ratings.result import Estimate

INK: Final = "#333"
FAINT: Final = "#bbb"
COLOURS: Final = ("#3b6ea5", "#c0562f", "#4f8f4a", "#8a5aa8", "#a08a2c", "#5b5b5b")
COLOUR: Final = COLOURS[0]
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

    def curve(
        self, points: Iterable[tuple[float, float]], colour: str = COLOUR,
        more: str = 'stroke-width="2"',
    ) -> str:
        """A line through ``points``, each a share of the width and a level."""
        path = " ".join(f"{self.across(x):.1f},{self.level(y):.1f}" for x, y in points)
        return f'<polyline points="{path}" fill="none" stroke="{colour}" {more}/>'

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


_POINTS_OF_PAIR: Final = ("0", "½", "1", "1½", "2")
_PROBABILITIES: Final = (0.0, 0.05, 0.5, 0.95, 1.0)
"""Probabilities with a line."""

_LANDMARKS: Final = ("random", "greedy", "minimax:2", "minimax:3", "stockfish@1000")
"""Rungs of the ladder that are named in the picture."""
_ELO_MARGIN: Final = 100.0
"""Above the highest end and below the lowest."""
_LONGEST_NAME: Final = 24


def campaign_curves_svg(names: Sequence[str], curves: Sequence[Sequence[Milestone]]) -> str:
    """A panel a measure, in each the scores of two campaigns' generations.

    Args:
        names: of the two campaigns.
        curves: their finished iterations.
    """
    parts = [
        text(20 + 300 * k, 24, name, "start", f'fill="{COLOURS[k]}"')
        for k, name in enumerate(names)
    ]
    for place, measure in enumerate(MEASURES):
        left = 50 + place * 310
        parts += _measure_panel(Panel(left, left + 260, 60, 270), measure, curves)
    return picture(960, 320, parts)


def _measure_panel(
    panel: Panel, measure: Measure, curves: Sequence[Sequence[Milestone]]
) -> Iterator[str]:
    most = max((m.measured(measure) for curve in curves for m in curve), default=0.0) or 1.0
    yield from panel.lines((0.0, 0.5, 1.0), "g")
    yield text(panel.across(0.5), panel.bottom + 34, f"score by {measure}")
    yield text(panel.right, panel.bottom + 18, f"{most:,.0f}", "end")
    for curve, colour in zip(curves, COLOURS, strict=False):
        points = ((m.measured(measure) / most, m.score) for m in curve if m.score is not None)
        yield panel.curve(points, colour)


def comparison_svg(comparison: Comparison) -> str:
    """Two players: how many pairs of games ended how, and the probability that one is better."""
    result = comparison.result
    return picture(760, 340, [
        text(20, 24, f"{result.player_a} against {result.player_b}", "start", TITLE),
        *_pair_bars(comparison, Panel(60, 330, 70, 290)),
        *_superiority(comparison, Panel(420, 730, 70, 290)),
    ])


def _pair_bars(comparison: Comparison, panel: Panel) -> Iterator[str]:
    """One bar for each score that a pair of games can have."""
    counts, most = comparison.counts.tolist(), max(1, int(comparison.counts.max()))
    step = (panel.right - panel.left) / len(counts)
    yield text(panel.left, 52, "pairs of games by points of the first", "start")
    for index, (count, points) in enumerate(zip(counts, _POINTS_OF_PAIR, strict=True)):
        height = (panel.bottom - panel.top - 16) * count / most
        x = panel.left + step * (index + 0.5)
        yield (
            f'<rect x="{x - 0.35 * step:.1f}" y="{panel.bottom - height:.1f}" '
            f'width="{0.7 * step:.1f}" height="{height:.1f}" fill="{COLOUR}"/>'
        )
        yield text(x, panel.bottom - height - 5, str(count))
        yield text(x, panel.bottom + 18, points)
    yield line(panel.left, panel.bottom, panel.right, panel.bottom, INK)


def _superiority(comparison: Comparison, panel: Panel) -> Iterator[str]:
    """Return the probability after fewer pairs."""
    last = max(1, int(comparison.counts.sum()))
    yield text(
        panel.left, 52, f"probability that the first is better: {comparison.superiority:.1%}",
        "start",
    )
    yield from panel.lines(_PROBABILITIES, ".0%")
    points = zip(comparison.pairs / last, comparison.superiority_by_pairs, strict=True)
    yield panel.curve([(0.0, 0.5), *points])
    yield text(panel.left, panel.bottom + 18, "0")
    yield text(panel.right, panel.bottom + 18, f"{last} pairs")


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
    panel = Panel(60, 640, 50, 350, low, high)
    return picture(760, 420, [
        text(20, 24, "Elo on the ladder (random = 0), 95 % intervals", "start", TITLE),
        *_elo_axis(ladder, panel),
        *_ratings(ratings, panel),
    ])


def _elo_axis(ladder: Ladder, panel: Panel) -> Iterator[str]:
    yield from panel.lines(panel.round_levels(), ".0f")
    for rung in ladder.rungs:
        if rung.player in _LANDMARKS and panel.low <= rung.elo <= panel.high:
            y = panel.level(rung.elo)
            yield line(panel.left, y, panel.right, y, FAINT)
            yield text(panel.right + 6, y + 4, f"{rung.player} {rung.elo:.0f}", "start")
    yield from panel.axes()


def _ratings(ratings: Sequence[LadderRating], panel: Panel) -> Iterator[str]:
    middles = []
    for place, rated in enumerate(ratings):
        share = (place + 0.5) / len(ratings)
        elo, name = rated.rating.elo, rated.rating.player
        middles.append((share, elo.value))
        x, y = panel.across(share), panel.level(elo.value)
        yield from interval(panel, x, elo, COLOUR)
        mark = "~" if rated.approximate else ""
        yield text(x + 8, y + 4, f"{mark}{elo.value:.0f}", "start")
        short = name if len(name) <= _LONGEST_NAME else f"…{name[-_LONGEST_NAME + 1:]}"
        below = panel.bottom + 16
        turn = f'transform="rotate(-20 {x:.1f} {below})"'
        yield text(x, below, short, "end" if len(ratings) > 1 else "middle", turn)
    if len(middles) > 1:
        yield panel.curve(middles, more='stroke-opacity="0.4"')
