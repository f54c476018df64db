"""Work of a network for a position, a move and a game, and its energy by three models.

Every number is of one evaluation, times the evaluations that the search asks for.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from chess_snn import nets
from chess_snn.campaign.viewing.lines import joules_text
from chess_snn.joules import Joules
from chess_snn.nets.analysis.energy import ENERGY_MODELS, Estimate, estimate_energy
from chess_snn.self_play import AskedPositions
from chess_snn.types import Json

COUNTS: Final = ("accumulates", "multiply_accumulates", "dense", "active", "membrane_updates")
"""Counts, named after the fields of :class:`chess_snn.nets.analysis.counts.WorkCounts`."""
PJ_PER_J: Final = 1e12
REST, PREVIOUS, TWO_PLIES = "nothing", "the previous evaluation", "two plies before"
"""Contents of the neurons' memory, against which changes are counted."""


def cost_facts(network: nets.Network, asked: AskedPositions) -> Json:
    """Count on ``asked`` and estimate; counts and pJ are means of a position, a move or a game."""
    spec, config = network.spec, network.config
    planes, before, previous = (
        nets.network_input(words, spec.board_shape)
        for words in (asked.planes, asked.before, asked.previous)
    )
    work = nets.count_work(network, planes)
    # The baseline sends what it has in 8 bits: with all of its bits every number would change.
    sending = nets.in_eight_bits(network)
    stream = {
        REST: work if sending is network else nets.count_work(sending, planes),
        PREVIOUS: nets.count_work(sending, planes, previous),
        TWO_PLIES: nets.count_work(sending, planes, before),
    }
    estimates = estimate_energy(spec, config, work, stream[TWO_PLIES])
    times = {
        "position": 1.0, "move": asked.evaluations_per_move,
        "game": asked.evaluations_per_move * asked.moves_per_game,
    }
    totals = {count: work.total(count) / work.num_positions for count in COUNTS}
    return {
        "activation": config.activation, "ticks": config.ticks,
        "virtual_ticks": config.virtual_ticks,
        "positions": work.num_positions, "games": asked.games, "evaluations": times,
        "moves_per_game": asked.moves_per_game,
        "activation_sparsity": work.activation_sparsity,
        "connection_sparsity": work.connection_sparsity, "footprint_bytes": nets.footprint(network),
        "counts": {
            unit: {count: factor * total for count, total in totals.items()}
            for unit, factor in times.items()
        },
        "stream": {name: _events(counts) for name, counts in stream.items()},
        "layers": _layers(work, estimates[0], stream[TWO_PLIES]),
        "energy": {
            kind: {
                "model": text,
                "of": {
                    each.name: {"terms_pj": (terms := getattr(each, kind))} | {
                        f"{unit}_pj": factor * sum(terms.values())
                        for unit, factor in times.items()
                    }
                    for each in estimates
                },
            }
            for kind, text in ENERGY_MODELS.items()
        },
    }


def measured_json(joules: Joules, asked: AskedPositions) -> Json:
    """Joules of 1,000 evaluations and of a move, over the lap in which ``asked`` was played."""
    total = joules.total
    return {"counters": joules.counters, "note": joules.note, "seconds": joules.seconds} | {
        f"joules_{unit}": None if total is None else total * count
        for unit, count in {
            "1000_evaluations": 1000 / asked.evaluations, "move": 1 / asked.moves
        }.items()
    }


def measured_text(measured: Json) -> str:
    """Return one line of it."""
    if measured["joules_move"] is None:
        return f"Measured: nothing, {measured['note']}."
    joules = {
        unit: PJ_PER_J * measured[f"joules_{unit}"] for unit in ("1000_evaluations", "move")
    }
    return (
        f"Measured: {joules_text(joules['1000_evaluations'])} for 1,000 evaluations, "
        f"{joules_text(joules['move'])} a move, by the counters of {measured['counters']}; "
        "all that the machine did is in it."
    )


def _events(counts: nets.WorkCounts) -> Json:
    """Means of a position: an event is a neuron that sends its spikes, or their change."""
    return {"share": counts.sender_share} | {
        name: counts.total(count) / counts.num_positions
        for name, count in (("events", "senders"), ("spikes", "active"), ("operations", "merged"))
    }


def _layers(work: nets.WorkCounts, estimate: Estimate, changes: nets.WorkCounts) -> list[Json]:
    """Means of a position by layer, with the energy of the first estimate."""
    neurons = iter(work.neurons.items())
    rows: list[Json] = []
    for name, energy in estimate.layers.items():
        if name in work.synapses:
            fired_as, counts = None, asdict(work.synapses[name])
        else:  # what is called by its input here is called by its module elsewhere
            fired_as, found = next(neurons)
            counts = asdict(found) | {"changed": changes.neurons[fired_as].senders}
        weights = {key: counts.pop(key) for key in ("weights", "zero_weights") if key in counts}
        rows.append(
            {"name": name, "neurons": fired_as} | weights
            | {key: count / work.num_positions for key, count in counts.items()}
            | {f"{kind}_pj": sum(getattr(energy, kind).values()) for kind in ENERGY_MODELS}
        )
    return rows
