"""Activity of the champion's neurons: rasters of two positions, operations and energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from markupsafe import Markup

from chess_snn import nets, training
from chess_snn.campaign.store.collection import games_of_iteration
from chess_snn.campaign.store.generations import read_generation
from chess_snn.campaign.store.notes import refuse_removed
from chess_snn.campaign.viewing.lines import joules_text
from chess_snn.data import state_rows
from chess_snn.errors import CorruptDataError
from chess_snn.later import torch
from chess_snn.nets.analysis.energy import ENERGY_MODELS, estimate_energy
from chess_snn.nets.analysis.operations import count_operations
from chess_snn.report.charts import Table, table_of
from chess_snn.report.facts import CampaignFacts
from chess_snn.report.games import ShownGame
from chess_snn.report.rasters import raster_svg
from chess_snn.types import UInt64Array

_MOST_TILES: Final = 40
"""Layers times ticks in one picture: large networks show some of their layers, evenly spread."""
_POSITIONS: Final = 128
"""Number of positions on which the network's work is counted."""
_COUNTS: Final = {
    "accumulates": "effective accumulates",
    "multiply_accumulates": "effective multiply-accumulates",
    "dense": "operations with zeros, in all virtual ticks",
    "active": "spikes",
    "membrane_updates": "membrane updates",
}


@dataclass(frozen=True, slots=True)
class Raster:
    """A picture of one evaluation."""

    title: str
    caption: str
    svg: Markup


@dataclass(frozen=True, slots=True)
class Work:
    """Operations and energy of one evaluation."""

    text: str
    tables: Sequence[Table | None]


def load_champion(facts: CampaignFacts) -> nets.Network:
    """The champion's network.

    Raises:
        CorruptDataError: it is damaged, or the choice of the champion is.
        RemovedError: ``gc`` removed it.
    """
    if facts.champion is None:
        raise CorruptDataError("the champion is not known")
    refuse_removed(facts.folder, facts.champion)
    read_generation(facts.folder, facts.champion)
    return training.load_weights_alone(facts.folder.checkpoint(facts.champion))


def rasters(
    facts: CampaignFacts, network: nets.Network, games: Sequence[ShownGame]
) -> list[Raster]:
    """The initial position, and the last choice of the first of ``games``; none of a baseline."""
    if not network.config.is_spiking:
        return []
    positions = {"The initial position": facts.game.initial_states(np.zeros(1, np.uint64))[0]}
    if games:
        positions[f"{games[0].title}: before the last move"] = games[0].states[-2]
    activities = nets.record_activity(network, _planes(facts, np.stack(list(positions.values()))))
    return [
        _raster(facts, network, title, state, activity)
        for (title, state), activity in zip(positions.items(), activities, strict=True)
    ]


def _raster(
    facts: CampaignFacts, network: nets.Network, title: str, state: UInt64Array,
    activity: dict[str, nets.LayerActivity],
) -> Raster:
    names = list(activity)
    most = max(1, _MOST_TILES // network.config.ticks)
    if len(names) > most:
        names = [names[i] for i in np.linspace(0, len(names) - 1, most).astype(int)]
    left_out = len(activity) - len(names)
    more = f" {left_out} of {len(activity)} layers are left out." if left_out else ""
    shown = {name: activity[name] for name in names}
    svg = raster_svg(shown, levels=network.config.most_spikes, title=title)
    return Raster(
        title, f"{title}: {facts.game.format_state(state)}.{more}",
        Markup(svg),  # noqa: S704 - raster_svg escapes the title
    )


def work_of(facts: CampaignFacts, network: nets.Network) -> Work | None:
    """Operations of one evaluation, counted on self-play, and their energy by all models.

    None where the games were removed.

    Raises:
        CorruptDataError: a shard is damaged.
    """
    states = _sample_states(facts)
    if states is None:
        return None
    spec, config = facts.game.spec, network.config
    work = nets.count_work(network, _planes(facts, states))
    operations = count_operations(spec, config)
    text = (
        f"Counted on {work.num_positions:,} positions of self-play, in float32. "
        f"{work.activation_sparsity:.1%} of neurons and ticks stay silent. Without skipping zeros "
        f"the network takes {operations.macs:,} multiply-accumulates for its "
        f"{operations.parameters:,} parameters."
    )
    counts = [(label, work.total(count) / work.num_positions) for count, label in _COUNTS.items()]
    return Work(text, [
        table_of("Operations of one evaluation", counts, {
            "count": lambda row: row[0], "an evaluation": lambda row: f"{row[1]:,.0f}",
        }),
        table_of("Energy of one evaluation, by three models", estimate_energy(spec, config, work), {
            "executed as": lambda estimate: estimate.name,
        } | {
            text: lambda estimate, kind=kind: (
                joules_text(sum(terms.values())) if (terms := getattr(estimate, kind)) else ""
            )
            for kind, text in ENERGY_MODELS.items()
        }),
    ])


def _sample_states(facts: CampaignFacts) -> UInt64Array | None:
    """uint64[N, W]: positions of the newest self-play games that are there; None without any."""
    for iteration in reversed(range(len(facts.receipts))):
        if shards := games_of_iteration(facts.folder, iteration).shards:
            records, _ = shards[0].read()
            chosen = np.linspace(0, len(records.states) - 1, _POSITIONS).astype(int)
            return state_rows(facts.game.spec, records.states[np.unique(chosen)])
    return None


def _planes(facts: CampaignFacts, states: UInt64Array) -> torch.Tensor:
    """Return float32[N, P, H, W]: what the network sees of ``states`` uint64[N, W]."""
    return nets.network_input(facts.game.planes(states), facts.game.spec.board_shape)
