"""Pictures of an experiment as SVG: differences over seeds, and strength against cost.

Costs are means over seeds. Energy has a panel for each model, always all of them. Each point has
the 95 % interval of its verdict; an end without a bound leaves the picture. Colours are budgets,
and ways to send spikes. Numbers are variants, named below.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from chess_snn.evaluation.ratings.result import Estimate
from chess_snn.nets.analysis.energy import SPIKING
from chess_snn.report.plots import (
    COLOURS,
    FAINT,
    TITLE,
    Panel,
    interval,
    line,
    picture,
    text,
)
from chess_snn.types import Json

DIFFERENCES: Final = "differences.svg"
ELO_SPIKES: Final = "elo-spikes.svg"
ELO_ENERGY: Final = "elo-energy.svg"
ELO_TIME: Final = "elo-time.svg"
_PJ_TO_UJ: Final = 1e-6
_ELO_MARGIN: Final = 60.0
_DECADE_MARGIN: Final = 0.1
"""Margin of a logarithmic axis, in decades."""
_MARGIN: Final = 0.1
"""Above and below all differences, as a share of their range."""
_MOST_TICKS: Final = 6
_MARKS: Final = (1.0, 2.0, 5.0)
"""Within a decade."""
_TOP: Final = 66.0
_HEIGHT: Final = 300.0
_WIDTH: Final = 360.0
_STRIDE: Final = _WIDTH + 70
"""Distance from panel to panel."""
_LEFT: Final = 60.0
_LABEL_WIDTH: Final = 215
_COLUMN_WIDTH: Final = 110
_NAME_WIDTH: Final = 205
_NAME_HEIGHT: Final = 18


@dataclass(frozen=True, slots=True)
class _Point:
    """A variant's difference to the first one, at its place on an axis."""

    variant: str
    x: float
    ahead: Estimate
    label: str
    """Budget, and way to send spikes."""


def experiment_plots(body: Json) -> dict[str, str]:
    """The pictures of :func:`chess_snn.experiment.results.results_json` that there are, by file."""
    if not body["verdicts"]:
        return {}
    budgets = body["file"]["judge"]["simulations"]
    rows = [row for row in body["rows"] if row["cost"] and row["simulations"] in budgets]
    return {DIFFERENCES: _differences(body)} | (_costs(body, rows) if rows else {})


def _differences(body: Json) -> str:
    """A column a verdict: the difference with each seed, the mean, and its interval."""
    seeds = [match["difference"] for match in body["matches"]]
    ends = [0.0, *seeds, *(
        verdict[end] for verdict in body["verdicts"] for end in ("low", "high")
        if verdict[end] is not None
    )]
    margin = _MARGIN * (max(ends) - min(ends)) or 1.0
    right = _LEFT + max(_WIDTH + 220, _COLUMN_WIDTH * len(body["verdicts"]))
    panel = Panel(_LEFT, right, _TOP, _TOP + _HEIGHT, min(ends) - margin, max(ends) + margin)
    unit = "score above one half" if _is_score(body) else "points ahead"
    parts = [text(20, 24, f"{body['name']}: {unit}, against {body['first']}", "start", TITLE),
             *panel.lines(panel.round_levels(), ".3g"), *panel.axes(),
             line(panel.left, panel.level(0.0), panel.right, panel.level(0.0), COLOURS[1])]
    for place, verdict in enumerate(body["verdicts"]):
        x = panel.across((place + 0.5) / len(body["verdicts"]))
        parts += [
            f'<circle cx="{x - 14:.1f}" cy="{panel.level(match["difference"]):.1f}" r="3" '
            f'fill="{FAINT}"><title>seed {match["seed"]}</title></circle>'
            for match in body["matches"]
            if (match["variant"], match["against_simulations"], match["is_equal_time"])
            == (verdict["variant"], verdict["simulations"], verdict["is_equal_time"])
        ]
        estimate = Estimate.of_json(verdict["mean"], verdict["low"], verdict["high"])
        budget = "equal time" if verdict["is_equal_time"] else _budget(verdict["simulations"])
        parts += interval(panel, x, estimate, COLOURS[0], verdict["text"])
        parts += [text(x, panel.bottom + 18, verdict["variant"]),
                  text(x, panel.bottom + 34, budget),
                  text(x, panel.bottom + 50, verdict["verdict"])]
    return picture(round(panel.right + 40), round(panel.bottom + 66), parts)


def _costs(body: Json, rows: Sequence[Json]) -> dict[str, str]:
    unit = "Elo" if _is_score(body) else "Points"

    def points(name: str) -> list[_Point]:
        return _points(body, rows, lambda row: {SPIKING: row[name]})

    def energies(model: str) -> list[_Point]:
        return _points(body, rows, lambda row: {
            way: _PJ_TO_UJ * picojoules
            for way, picojoules in row[f"{model}_model_pj"]["move"].items()
        })

    spikes = "spikes in one evaluation (of ReLU: values above 0)"
    time = f"ms a move, measured, {rows[0]['cost']['threads']} threads"
    title = f"{unit} ahead of {body['first']}, and"
    return {
        ELO_SPIKES: _plot(f"{title} spikes", {spikes: points("spikes_per_evaluation")}),
        ELO_ENERGY: _plot(f"{title} energy of a move: three models, nothing measured", {
            "µJ a move, 45 nm convention (model)": energies("convention"),
            "µJ a move, fair model (model)": energies("fair"),
            "µJ a move, event-driven chip (model)": energies("chip"),
        }),
        ELO_TIME: _plot(f"{title} measured time", {time: points("ms_per_move_measured")}),
    }


def _points(
    body: Json, rows: Sequence[Json], costs_of: Callable[[Json], dict[str, float]]
) -> list[_Point]:
    """A point for each variant, budget and way whose difference is known."""
    kind = "elo_" if _is_score(body) else ""
    ahead = {
        (verdict["variant"], verdict["simulations"]):
            [verdict[f"{kind}{end}"] for end in ("mean", "low", "high")]
        for verdict in body["verdicts"] if not verdict["is_equal_time"]
    }
    seeds: dict[tuple[str, int], list[dict[str, float]]] = {}
    for row in rows:
        seeds.setdefault((row["variant"], row["simulations"]), []).append(costs_of(row))
    points = []
    for (variant, simulations), costs in seeds.items():
        found = [0.0] * 3 if variant == body["first"] else ahead.get((variant, simulations), [None])
        if found[0] is None:
            continue
        budget = _budget(simulations)
        points += [
            _Point(
                variant, fmean(each[way] for each in costs), Estimate.of_json(*found),
                budget if way == SPIKING else f"{budget}, {way.rpartition('-bit, ')[2]}",
            )
            for way in costs[0]
        ]
    return points


def _is_score(body: Json) -> bool:
    return "elo_mean" in body["verdicts"][0]


def _budget(simulations: int) -> str:
    return f"{simulations} simulations" if simulations else "no search"


def _plot(title: str, panels: dict[str, list[_Point]]) -> str:
    """Panels side by side with one scale of differences."""
    every = [point for points in panels.values() for point in points]
    ends = [
        end for point in every for end in (point.ahead.value, point.ahead.low, point.ahead.high)
        if math.isfinite(end)
    ]
    low, high = min(ends) - _ELO_MARGIN, max(ends) + _ELO_MARGIN
    numbers = {name: i for i, name in enumerate(dict.fromkeys(p.variant for p in every), start=1)}
    labels = dict.fromkeys(point.label for point in every)
    colours = {label: COLOURS[i % len(COLOURS)] for i, label in enumerate(labels)}
    width = max(_LEFT + len(panels) * _STRIDE, 20 + _LABEL_WIDTH * len(labels))
    columns = int(width // _NAME_WIDTH)
    parts = [text(20, 24, title, "start", TITLE)]
    parts += [
        text(20 + _LABEL_WIDTH * place, 46, label, "start", f'fill="{colour}"')
        for place, (label, colour) in enumerate(colours.items())
    ]
    for place, (label, points) in enumerate(panels.items()):
        left = _LEFT + place * _STRIDE
        panel = Panel(left, left + _WIDTH, _TOP, _TOP + _HEIGHT, low, high)
        parts += _panel(panel, label, points, numbers, colours)
    top = _TOP + _HEIGHT + 64
    parts += [
        text(20 + _NAME_WIDTH * ((number - 1) % columns),
              top + _NAME_HEIGHT * ((number - 1) // columns), f"{number}  {name}", "start")
        for name, number in numbers.items()
    ]
    rows = math.ceil(len(numbers) / columns)
    return picture(round(width), round(top + _NAME_HEIGHT * rows), parts)


def _panel(
    panel: Panel, label: str, points: Sequence[_Point], numbers: Mapping[str, int],
    colours: Mapping[str, str],
) -> Iterator[str]:
    least = min((point.x for point in points if point.x > 0), default=1.0)
    decades = [math.log10(max(point.x, least / 10)) for point in points]  # 0 is at the left end
    first, last = min(decades) - _DECADE_MARGIN, max(decades) + _DECADE_MARGIN
    yield from panel.lines(panel.round_levels(), ".0f")
    for mark in _marks(first, last):
        x = panel.across((math.log10(mark) - first) / (last - first))
        yield line(x, panel.top, x, panel.bottom, FAINT)
        yield text(x, panel.bottom + 16, f"{mark:,g}")
    yield from panel.axes()
    yield text(panel.across(0.5), panel.bottom + 38, label)
    for point, decade in zip(points, decades, strict=True):
        x, colour = panel.across((decade - first) / (last - first)), colours[point.label]
        yield from interval(
            panel, x, point.ahead, colour, f"{point.variant}: {point.ahead.value:+.0f}"
        )
        y = panel.level(point.ahead.value)
        yield text(x + 6, y - 6, str(numbers[point.variant]), "start", f'fill="{colour}"')


def _marks(first: float, last: float) -> list[float]:
    """Round numbers between two powers of ten; not too many."""
    decades = range(math.floor(first), math.ceil(last) + 1)
    found = [
        mark * 10.0**decade for decade in decades for mark in _MARKS
        if first <= math.log10(mark * 10.0**decade) <= last
    ]
    return found if len(found) <= _MOST_TICKS else found[:: math.ceil(len(found) / _MOST_TICKS)]
