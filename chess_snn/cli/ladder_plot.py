"""Ratings on the ladder as one SVG: networks with their intervals, beside rungs everybody knows."""

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from chess_snn.evaluation.ladder import Ladder, LadderRating

_WIDTH: Final = 760
_HEIGHT: Final = 420
_LEFT: Final = 60
_RIGHT: Final = 640
_TOP: Final = 50
_BOTTOM: Final = 350
_LANDMARKS: Final = ("random", "greedy", "minimax:2", "minimax:3", "stockfish@1000")
_MARGIN: Final = 100.0
"""Points above the highest end, and below the lowest."""
_LONGEST_NAME: Final = 24
_INK: Final = "#333"
_FAINT: Final = "#bbb"
_COLOUR: Final = "#3b6ea5"
_CAP: Final = 5.0


def ladder_svg(ladder: Ladder, ratings: Sequence[LadderRating]) -> str:
    """The picture of ``ratings``, in their order. An end that is unbounded leaves the picture."""
    ends = [
        end for rated in ratings
        for end in (rated.rating.elo.value, rated.rating.elo.low, rated.rating.elo.high)
        if math.isfinite(end)
    ]
    low, high = min(ends) - _MARGIN, max(ends) + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12" '
        f'fill="{_INK}">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(20, 24, "Elo on the ladder (random = 0), 95 % intervals", "start",
              'font-size="15" font-weight="bold"'),
        *_axis(ladder, low, high),
        *_points(ratings, low, high),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axis(ladder: Ladder, low: float, high: float) -> Iterator[str]:
    step = 10.0 ** math.floor(math.log10(high - low))
    step = step if (high - low) / step >= 4 else step / 4
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        level = _level(number * step, low, high)
        yield _line(_LEFT - 4, level, _LEFT, level, _INK)
        yield _text(_LEFT - 8, level + 4, f"{number * step:.0f}", "end")
    for rung in ladder.rungs:
        if rung.player in _LANDMARKS and low <= rung.elo <= high:
            level = _level(rung.elo, low, high)
            yield _line(_LEFT, level, _RIGHT, level, _FAINT)
            yield _text(_RIGHT + 6, level + 4, f"{rung.player} {rung.elo:.0f}", "start")
    yield _line(_LEFT, _TOP, _LEFT, _BOTTOM, _INK)
    yield _line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, _INK)


def _points(ratings: Sequence[LadderRating], low: float, high: float) -> Iterator[str]:
    middles = []
    for place, rated in enumerate(ratings):
        x = _LEFT + (_RIGHT - _LEFT) * (place + 0.5) / len(ratings)
        elo, name = rated.rating.elo, rated.rating.player
        bottom, top = _level(max(elo.low, low), low, high), _level(min(elo.high, high), low, high)
        yield _line(x, bottom, x, top, _COLOUR)
        for end, level in ((elo.low, bottom), (elo.high, top)):
            if math.isfinite(end):
                yield _line(x - _CAP, level, x + _CAP, level, _COLOUR)
        level = _level(elo.value, low, high)
        middles.append((x, level))
        yield f'<circle cx="{x:.1f}" cy="{level:.1f}" r="4" fill="{_COLOUR}"/>'
        mark = "~" if rated.approximate else ""
        yield _text(x + 8, level + 4, f"{mark}{elo.value:.0f}", "start")
        short = name if len(name) <= _LONGEST_NAME else f"…{name[-_LONGEST_NAME + 1:]}"
        turn = f'transform="rotate(-20 {x:.1f} {_BOTTOM + 16})"'
        yield _text(x, _BOTTOM + 16, short, "end" if len(ratings) > 1 else "middle", turn)
    if len(middles) > 1:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in middles)
        yield f'<polyline points="{path}" fill="none" stroke="{_COLOUR}" stroke-opacity="0.4"/>'


def _level(elo: float, low: float, high: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * (elo - low) / (high - low)


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
