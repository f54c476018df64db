"""Costs of a campaign: time, evaluations, and operations and energy of one evaluation."""

import re
from collections.abc import Iterator
from typing import Final

import numpy as np
import torch

from chess_snn.campaign.store.collection import games_of_iteration
from chess_snn.campaign.store.plans import S_PER_HOUR
from chess_snn.campaign.viewing.columns import Columns
from chess_snn.campaign.viewing.lines import joules_text
from chess_snn.data import state_rows
from chess_snn.nets import Network, count_work, network_input
from chess_snn.nets.analysis.energy import CONVENTION, FAIR, estimate_energy
from chess_snn.nets.analysis.operations import count_operations
from chess_snn.report.facts import CampaignFacts
from chess_snn.report.markup import element, paragraph, table, terms
from chess_snn.types import UInt64Array
from chess_snn.wording import counted

_POSITIONS: Final = 128
"""On which the network's work is counted."""
_CORES: Final = re.compile(r", (\d+) cores$")
"""Ends the machine's name in :func:`chess_snn.sources.provenance`."""
_COUNTS: Final = {
    "accumulates": "effective accumulates",
    "multiply_accumulates": "effective multiply-accumulates",
    "dense": "operations with zeros, in all virtual ticks",
    "active": "spikes",
    "membrane_updates": "membrane updates",
}


def time_html(facts: CampaignFacts) -> str:
    """Hours by stage, hours of cores, games and evaluations of self-play, games of matches."""
    receipts = facts.receipts
    statistics = [receipt.statistics for receipt in receipts]
    seconds = [receipt.seconds for receipt in receipts]
    simulations = sum(
        played.positions * facts.folder.config.search.simulations(receipt.plan.progress_first)
        for receipt, played in zip(receipts, statistics, strict=True)
    )
    pairs = {
        "running time": f"{facts.elapsed_h:.2f} h",
        "self-play": _hours(sum(each.self_play for each in seconds)),
        "training": _hours(sum(each.training for each in seconds)),
        "evaluation and gating matches": _hours(
            sum(each.evaluation + each.gating_match for each in seconds)),
        "workers' time in self-play": _hours(sum(played.seconds for played in statistics)),
        "of it waiting for the network": _hours(
            sum(played.network_seconds for played in statistics)),
    }
    if found := _CORES.search(str(facts.provenance.get("machine", ""))):
        cores = int(found[1])
        pairs["core-hours"] = (
            f"{cores * facts.elapsed_h:.2f} at most, {facts.elapsed_h:.2f} h on "
            f"{counted(cores, 'core')}"
        )
    pairs |= {
        "games of self-play": f"{facts.num_games:,}",
        "positions of self-play": f"{facts.num_positions:,}",
        "simulations of their search": f"about {simulations:,}, each with at most one evaluation "
                                       "of the network",
        "games of matches": _match_games(facts),
    }
    return terms({name: element("span", text) for name, text in pairs.items()}, "facts")


def _match_games(facts: CampaignFacts) -> str:
    """Games by what their match was for."""
    evaluation = sum(match.num_games for receipt in facts.receipts for match in receipt.matches)
    ladder = sum(
        receipt.ladder_test.num_games for receipt in facts.receipts if receipt.ladder_test
    )
    gating = sum(receipt.promotion.games for receipt in facts.receipts if receipt.promotion)
    final = sum(match.num_games for match in facts.finals)
    return (
        f"{evaluation:,} of evaluation, {ladder:,} of ladder tests, {gating:,} of gating matches, "
        f"{final:,} at the end"
    )



def _hours(seconds: float) -> str:
    return f"{seconds / S_PER_HOUR:.2f} h"


def sample_states(facts: CampaignFacts) -> UInt64Array | None:
    """uint64[N, W]: positions of the newest self-play games that are there; None without any.

    Raises:
        CorruptDataError: a shard is damaged.
    """
    for iteration in reversed(range(len(facts.receipts))):
        shards = games_of_iteration(facts.folder, iteration).shards
        if shards:
            records, _ = shards[0].read()
            chosen = np.linspace(0, len(records.states) - 1, _POSITIONS).astype(int)
            return state_rows(facts.game.spec, records.states[np.unique(chosen)])
    return None


def planes_of(facts: CampaignFacts, states: UInt64Array) -> torch.Tensor:
    """float32[N, P, H, W]: what the network sees of ``states`` uint64[N, W]."""
    return network_input(facts.game.planes(states), facts.game.spec.board_shape)


def work_html(facts: CampaignFacts, network: Network, states: UInt64Array) -> Iterator[str]:
    """Operations of one evaluation, counted, and its energy by both models."""
    spec, config = facts.game.spec, network.config
    work = count_work(network, planes_of(facts, states))
    operations = count_operations(spec, config)
    yield paragraph(
        f"Counted on {work.num_positions:,} positions of self-play, in float32, for one "
        f"evaluation. {work.activation_sparsity:.1%} of neurons and ticks stay silent. Without "
        f"skipping zeros the network takes {operations.macs:,} multiply-accumulates for its "
        f"{operations.parameters:,} parameters."
    )
    rows = [(label, work.total(count) / work.num_positions) for count, label in _COUNTS.items()]
    counted: Columns = {"count": lambda row: row[0], "an evaluation": lambda row: f"{row[1]:,.0f}"}
    yield table("Operations of one evaluation", rows, counted)
    columns: Columns = {
        "executed as": lambda estimate: estimate.name,
        CONVENTION: lambda estimate: joules_text(sum(estimate.convention.values())),
        FAIR: lambda estimate: joules_text(sum(estimate.fair.values())),
    }
    yield table("Energy of one evaluation, by two models", estimate_energy(spec, config, work),
                columns)
    yield paragraph(
        "Both columns are models: no energy was measured. They differ in what they price, and one "
        "alone would mislead; docs/spikes.md and decision 35 have their terms and sources.", "note",
    )
