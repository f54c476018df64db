"""The scores of two campaigns over iterations, games and time, as one SVG."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from chess_snn.campaign.strength.measured_points import MEASURES, Measure, Milestone

_WIDTH: Final = 960
_HEIGHT: Final = 320
_TOP: Final = 60
_BOTTOM: Final = 270
_PANEL: Final = 260
_COLOURS: Final = ("#3b6ea5", "#c0562f")


def campaign_curves_svg(names: Sequence[str], curves: Sequence[Sequence[Milestone]]) -> str:
    """The picture: a panel a measure, in each the score of either campaign's generations.

    Args:
        names: of the two campaigns.
        curves: their finished iterations.
    """
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        *(_text(20 + 300 * k, 24, name, _COLOURS[k], "start") for k, name in enumerate(names)),
    ]
    for place, measure in enumerate(MEASURES):
        parts += _panel(50 + place * 310, measure, curves)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(
    left: float, measure: Measure, curves: Sequence[Sequence[Milestone]]
) -> Iterator[str]:
    most = max((m.measured(measure) for curve in curves for m in curve), default=0.0) or 1.0
    for score in (0.0, 0.5, 1.0):
        y = _level(score)
        yield f'<line x1="{left}" y1="{y}" x2="{left + _PANEL}" y2="{y}" stroke="#bbb"/>'
        yield _text(left - 4, y + 4, f"{score:g}", "#333", "end")
    yield _text(left + _PANEL / 2, _BOTTOM + 34, f"score by {measure}", "#333")
    yield _text(left + _PANEL, _BOTTOM + 18, f"{most:,.0f}", "#333", "end")
    for curve, colour in zip(curves, _COLOURS, strict=True):
        points = " ".join(
            f"{left + _PANEL * m.measured(measure) / most:.1f},{_level(m.score):.1f}"
            for m in curve if m.score is not None
        )
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'


def _level(score: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * score


def _text(x: float, y: float, text: str, colour: str, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(text)}</text>"
    )
