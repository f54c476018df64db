"""``models cost`` and ``campaign estimate``: what networks cost and how long iterations take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from chess_snn.cli.console import console, print_message, print_rows, table_of, work_bar
from chess_snn.cli.options import (
    NETWORK,
    ConfigOption,
    JsonFile,
    NetworkDeviceOption,
    PresetOption,
    SeedOption,
    SetOption,
    SimulationsOption,
)
from chess_snn.known import SHIPPED_CHESS
from chess_snn.later import to_run
from chess_snn.wording import counted

if TYPE_CHECKING or to_run(__name__):
    from chess_snn import nets
    from chess_snn.campaign import load_config
    from chess_snn.campaign.configuration.settings import CampaignConfig, NetworkSettings
    from chess_snn.campaign.machine.cost import (
        OPTIMISM,
        Cost,
        Pace,
        measure_pace,
        predict_campaign,
    )
    from chess_snn.campaign.machine.workers import config_here
    from chess_snn.campaign.models.model import Model
    from chess_snn.campaign.models.references import find_model
    from chess_snn.campaign.store.plans import S_PER_HOUR
    from chess_snn.campaign.viewing.lines import joules_text, si_text
    from chess_snn.data import write_json
    from chess_snn.evaluation.matches import default_max_plies
    from chess_snn.experiment.cost import COUNTS, cost_facts, measured_json, measured_text
    from chess_snn.games import get_game
    from chess_snn.games.base import Game
    from chess_snn.joules import EnergyCounters
    from chess_snn.nets.analysis.energy import ENERGY_MODELS
    from chess_snn.self_play import AskedPositions, asked_positions
    from chess_snn.types import Json

Columns: TypeAlias = "dict[str, Callable[[Json], str]]"


def cost_command(
    model: Annotated[str, typer.Argument(**NETWORK)] = SHIPPED_CHESS,
    positions: Annotated[
        int, typer.Option(min=1, max=100_000, help="To count on, drawn from those asked about.")
    ] = 256,
    simulations: SimulationsOption = 64,
    games: Annotated[
        int, typer.Option(min=1, max=10_000, help="Against itself, from random openings.")
    ] = 4,
    stream: Annotated[
        bool, typer.Option("--stream", help="Show events where neurons send what changed, too.")
    ] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure joules, where the machine has a counter.")
    ] = False,
    seed: SeedOption = 0,
    device: NetworkDeviceOption = "cpu",
    json_file: JsonFile = None,
) -> None:
    """Count what a network does for a position, a move and a game, and model its energy.

    It plays games against itself, and the search's evaluations are counted. On a sample of their
    positions, accumulates, multiply-accumulates and membrane updates are counted as NeuroBench
    counts them, in float32 and with integer spikes as binary ones. Energy comes from three models,
    which no chip has confirmed: the 45 nm convention, a fair one that prices memory and has a
    baseline of as many bits, and an event-driven chip; see docs/spikes.md.

    chess-snn models cost campaigns/cpu-001@champion --simulations 200
    """
    chosen = find_model(model)
    game = get_game(chosen.game)
    network = chosen.load(game)
    energy = EnergyCounters() if measure else None
    asked = _play(game, chosen, network, simulations, games, positions, seed, device, energy)
    body = {
        "model": chosen.label, "game": game.spec.name, "simulations": simulations, "seed": seed,
    } | cost_facts(network, asked)
    if energy is not None:
        body["measured"] = measured_json(energy.lap(), asked)
    _print(body)
    if stream:
        _print_stream(body)
    if json_file is not None:
        write_json(json_file, body)


def _play(
    game: Game, chosen: Model, network: nets.Network, simulations: int, games: int, positions: int,
    seed: int, device: str, energy: EnergyCounters | None,
) -> AskedPositions:
    with (
        nets.make_evaluator(network, device=device, precision=chosen.precision) as evaluator,
        work_bar("playing", "games over") as on_progress,
    ):
        if energy is not None:
            energy.lap()
        return asked_positions(
            game, evaluator, chosen.search, simulations=simulations, num_games=games,
            num_positions=positions, max_plies=default_max_plies(game.spec), seed=seed,
            on_progress=lambda finished, _: on_progress(finished, games),
        )


def _print(body: Json) -> None:
    """Every table fits into a terminal of 80 columns."""
    evaluations = body["evaluations"]
    print_message(
        f"{body['model']}: {body['activation']}, {counted(body['ticks'], 'tick')}, "
        f"{body['virtual_ticks']} with binary spikes; counted on {body['positions']:,} positions."
    )
    print_message(
        f"A move of {counted(body['simulations'], 'simulation')} takes {evaluations['move']:,.1f} "
        f"evaluations, a game {body['moves_per_game']:,.0f} moves "
        f"({counted(body['games'], 'game')})."
    )
    print_message("Energies below are modelled, by three models with their terms.")
    if (measured := body.get("measured")) is not None:
        print_message(measured_text(measured))
    executed = next(iter(body["energy"]["fair"]["of"]))
    energies: Columns = {
        "45 nm": lambda row: joules_text(row["convention_pj"]),
        "fair": lambda row: joules_text(row["fair_pj"]),
        "chip": lambda row: joules_text(row["chip_pj"]),
    }
    columns: Columns = {
        "layer": lambda row: row["name"],
        "accum.": lambda row: si_text(row["accumulates"]),
        "mult.-acc.": lambda row: si_text(row["multiply_accumulates"]),
        "dense": lambda row: si_text(row["dense"]),
    }
    layers = body["layers"]
    console.print(table_of(
        f"Layers, for a position, executed as: {executed}",
        [row for row in layers if row["neurons"] is None], columns | energies,
        left=("layer",),
    ))
    columns = {
        "layer": lambda row: row["name"],
        "active": lambda row: f"{row['active'] / row['chances']:.1%}",
        "changed": lambda row: f"{row['changed'] / row['num_neurons']:.1%}",
        "updates": lambda row: si_text(row["membrane_updates"]),
    }
    console.print(table_of(
        None, [row for row in layers if row["neurons"] is not None], columns | energies,
        left=("layer",),
    ))
    console.print(table_of(
        None,
        [{"count": count.replace("_", " ")} | {u: body["counts"][u][count] for u in evaluations}
         for count in COUNTS],
        {"count": lambda row: row["count"]}
        | {f"a {unit}": lambda row, unit=unit: si_text(row[unit]) for unit in evaluations},
        left=("count",),
    ))
    print_rows(None, {
        "activation sparsity": f"{body['activation_sparsity']:.1%}",
        "connection sparsity": f"{body['connection_sparsity']:.2%}",
        "footprint": f"{si_text(body['footprint_bytes'], 'B')}, as trained",
    })
    for kind, text in ENERGY_MODELS.items():
        designs = {
            name: each for name, each in body["energy"][kind]["of"].items() if each["terms_pj"]
        }
        terms = dict.fromkeys(term for each in designs.values() for term in each["terms_pj"])
        rows = [
            {"term": term} | {name: each["terms_pj"][term] for name, each in designs.items()}
            for term in terms
        ] + [
            {"term": f"a {unit}"}
            | {name: each[f"{unit}_pj"] for name, each in designs.items()}
            for unit in evaluations
        ]
        console.print(table_of(
            text[0].upper() + text[1:], rows,
            {"term": lambda row: row["term"]}
            | {name: lambda row, name=name: joules_text(row[name]) for name in designs},
            left=("term",),
        ))


def _print_stream(body: Json) -> None:
    print_message("Neurons that remember what they sent may send the difference, as one event:")
    rows = [{"memory": name} | events for name, events in body["stream"].items()]
    console.print(table_of("Events of a position", rows, {
        "they remember": lambda row: row["memory"],
        "neurons that send": lambda row: f"{row['share']:.1%}",
        "events": lambda row: si_text(row["events"]),
        "spikes": lambda row: si_text(row["spikes"]),
        "operations": lambda row: si_text(row["operations"]),
    }, left=("they remember",)))


def estimate(
    preset: PresetOption = "smoke",
    config: ConfigOption = None,
    set: SetOption = None,
    plies: Annotated[
        float | None,
        typer.Option(help="Mean length of a game; by default that of the first hours.", min=1.0),
    ] = None,
) -> None:
    """Measure this machine for some seconds, and say what an iteration takes.

    chess-snn campaign estimate --preset cpu --set net.size=small
    """
    configuration = config_here(partial(load_config, preset, config, set or []))
    costs = predict_campaign(configuration, measured_paces(configuration), plies)
    _print_costs(configuration, costs)


def measured_paces(config: CampaignConfig) -> Callable[[float], Pace]:
    """The pace after a share of the campaign; that of each size of its network is measured once."""

    @cache
    def measured(net: NetworkSettings) -> Pace:
        with work_bar("measuring", "paces") as on_progress:
            pace = measure_pace(replace(config, net=net), on_progress)
        print_message(
            f"{net.size}: {pace.evaluations_per_s:,.0f} evaluations/s in self-play, "
            f"{pace.samples_per_s:,.0f} samples/s in training"
        )
        return pace

    return lambda progress: measured(config.net.at(progress))


def _print_costs(config: CampaignConfig, costs: tuple[Cost, Cost]) -> None:
    rows = list(zip(("first", "last"), (0.0, 1.0), costs, strict=True))
    title = f"an iteration of {config.self_play.games_per_iteration:,} games"
    console.print(table_of(title, rows, {
        "": lambda row: row[0],
        "simulations": lambda row: str(config.search.simulations(row[1])),
        "self-play s": lambda row: f"{row[2].self_play_s:,.1f}",
        "training s": lambda row: f"{row[2].training_s:,.1f}",
        "iteration s": lambda row: f"{row[2].iteration_s:,.1f}",
        "positions/s": lambda row: f"{row[2].positions_per_s:,.0f}",
    }, left=("",)))
    mean_s = sum(cost.iteration_s for cost in costs) / len(costs)
    run, games = config.campaign, config.self_play.games_per_iteration
    low, high = OPTIMISM
    print_message(
        f"In a measured campaign iterations took {low:g} to {high:g} times as long, longest beside "
        "an evaluation. So expect:"
    )
    if run.hours:
        fewest, most = (run.hours * S_PER_HOUR / (mean_s * factor) for factor in (high, low))
        print_message(
            f"{fewest:,.0f} to {most:,.0f} iterations and {fewest * games:,.0f} to "
            f"{most * games:,.0f} games in {run.hours:g} h"
        )
    else:
        quickest, slowest = (run.iterations * mean_s * factor / 60 for factor in OPTIMISM)
        print_message(
            f"{quickest:,.1f} to {slowest:,.1f} min for {run.iterations:,} iterations and "
            f"{run.iterations * games:,} games"
        )
