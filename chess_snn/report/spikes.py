"""Spikes of the champion for a few positions: rasters."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from chess_snn.nets import LayerActivity, Network, record_activity
from chess_snn.report.costs import planes_of
from chess_snn.report.facts import CampaignFacts
from chess_snn.report.games import ShownGame
from chess_snn.report.markup import element, paragraph, scrolling, tag
from chess_snn.report.rasters import raster_svg
from chess_snn.types import UInt64Array
from chess_snn.wording import counted

_MOST_TILES: Final = 40
"""Layers times ticks in one picture: large networks show some of their layers, evenly spread."""


def spikes_html(
    facts: CampaignFacts, network: Network, games: Sequence[ShownGame]
) -> Iterator[str]:
    """A figure for each position."""
    if not network.config.is_spiking:
        yield paragraph("The network is a ReLU baseline; none of its neurons spikes.")
        return
    yield paragraph(
        f"The champion, generation {facts.champion}, evaluates each position once, in "
        f"{counted(network.config.ticks, 'tick')}; a neuron may spike "
        f"{counted(network.config.most_spikes, 'time')} in a tick.", "note",
    )
    positions = _positions(facts, games)
    states = np.stack([state for _, state in positions])
    activities = record_activity(network, planes_of(facts, states))
    for (title, state), activity in zip(positions, activities, strict=True):
        shown = _shown(activity, network.config.ticks)
        svg = raster_svg(shown, levels=network.config.most_spikes, title=title)
        left_out = len(activity) - len(shown)
        more = f" {left_out} of {len(activity)} layers are left out." if left_out else ""
        yield tag("figure", (
            scrolling(title, svg, "raster")
            + element("figcaption", f"{title}: {facts.game.format_state(state)}.{more}")
        ))


def _shown(activity: dict[str, LayerActivity], ticks: int) -> dict[str, LayerActivity]:
    names = list(activity)
    most = max(1, _MOST_TILES // ticks)
    if len(names) > most:
        names = [names[i] for i in np.linspace(0, len(names) - 1, most).astype(int)]
    return {name: activity[name] for name in names}


def _positions(
    facts: CampaignFacts, games: Sequence[ShownGame]
) -> list[tuple[str, UInt64Array]]:
    """The initial position, the last choice of the first game, and one amid the last game."""
    found = [("The initial position", facts.game.initial_states(np.zeros(1, np.uint64))[0])]
    if games:
        first, last = games[0], games[-1]
        found += [
            (f"{first.title}: before the last move", first.states[-2]),
            (f"{last.title}: after half of the moves", last.states[len(last.states) // 2 - 1]),
        ]
    return found
