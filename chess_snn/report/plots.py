"""Pictures of results as SVG: two campaigns, two players, ratings on the ladder."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from chess_snn.campaign.strength.measured_points import MEASURES, Measure, Milestone
from chess_snn.evaluation.comparison import Comparison
from chess_snn.evaluation.ladder.adaptive import LadderRating
from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.report.drawing import (
    COLOUR,
    COLOURS,
    FAINT,
    INK,
    TITLE,
    Panel,
    interval,
    line,
    picture,
    text,
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
