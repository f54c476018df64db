"""``chess-snn study``: what spikes cost for their strength."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from chess_snn.cli.console import console, print_message, stoppable, table_of, work_bar
from chess_snn.cli.options import (
    ConfigOption,
    NetworkDeviceOption,
    SeedOption,
    SetOption,
    ThreadsOption,
    refuse_in_campaign,
)
from chess_snn.cli.orchestration import record_study
from chess_snn.errors import UsageError
from chess_snn.known import PRESETS
from chess_snn.later import to_run

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.campaign import CampaignConfig, CampaignFolder, load_config
    from chess_snn.campaign.configuration.loading import Setting, changed_config
    from chess_snn.campaign.store.folder import CONFIG_FILE
    from chess_snn.campaign.viewing.lines import joules_text, si_text
    from chess_snn.cli.rate import APPROXIMATE_NOTE, ENGINE_S
    from chess_snn.data import write_text
    from chess_snn.evaluation.engines.pool import EngineSettings
    from chess_snn.evaluation.ladder.available import available_players
    from chess_snn.evaluation.ladder.ladder import read_ladder
    from chess_snn.evaluation.ratings.result import Estimate, interval_text
    from chess_snn.report.plots import ladder_svg
    from chess_snn.report.study_plots import study_plots
    from chess_snn.study.cost import ENERGY_MODELS
    from chess_snn.study.plan import StudyRequest, begin_study
    from chess_snn.study.results import results_json
    from chess_snn.study.run import StudyRun
    from chess_snn.study.variants import make_variants
    from chess_snn.types import Json

RESULTS: Final = "study.json"
RATINGS_PLOT: Final = "ratings.svg"
_DEFAULT_TICKS: Final = "1,2,4,8"
_DEFAULT_LEVELS: Final = "2,4"
_DEFAULT_MATCH_GAMES: Final = 200
Number = TypeVar("Number", int, float)


def study_command(
    out: Annotated[Path, typer.Argument(help="New folder, or that of a study to go on with.")],
    games: Annotated[
        list[Path],
        typer.Option(help="What all networks learn from: a campaign's folder, or --out of games "
                          "import or games label. May be repeated."),
    ],
    ticks: Annotated[
        str, typer.Option(help=f"Ticks of leaky networks, such as {_DEFAULT_TICKS}.")
    ] = "",
    levels: Annotated[
        str, typer.Option(help=f"Levels of integer networks, such as {_DEFAULT_LEVELS}.")
    ] = "",
    penalties: Annotated[
        str, typer.Option(help="Weights of the spike rate in the loss, such as 0,0.1,1.")
    ] = "",
    relu: Annotated[bool, typer.Option("--relu", help="The ReLU baseline too.")] = False,
    pair: Annotated[
        bool, typer.Option("--pair", help="The spiking network of the settings and its ReLU "
                           f"baseline, with matches of {_DEFAULT_MATCH_GAMES} games.")
    ] = False,
    variant: Annotated[
        list[str] | None,
        typer.Option(help="NAME:setting=value,setting=value: a network with these settings. May be "
                          "repeated."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Settings of all networks, in place of the campaign's: "
                                      f"{', '.join(PRESETS)}.")
    ] = None,
    config: ConfigOption = None,
    set: SetOption = None,
    simulations: Annotated[
        str, typer.Option(help="Budgets of a move in which each network is rated; 0 plays without "
                               "search.")
    ] = "0,64",
    equal_time: Annotated[
        bool, typer.Option(help="Also rate each network with as many simulations as take it as "
                                "long as the first one takes for the largest budget.")
    ] = True,
    rating_games: Annotated[
        int, typer.Option(help="Of each network on the ladder, with each budget.")
    ] = 100,
    match_games: Annotated[
        int | None, typer.Option(help="Of each network against the first one, with each budget; "
                                      f"0 unless --pair, then {_DEFAULT_MATCH_GAMES}.")
    ] = None,
    minutes_per_network: Annotated[
        float, typer.Option(help="Training time of the slowest network; all learn from the same "
                                 "games as often. 0 takes all games supervised.epochs times.")
    ] = 0.0,
    seed: SeedOption = 0,
    threads: ThreadsOption = 0,
    device: NetworkDeviceOption = "cpu",
) -> None:
    """Train networks on the same games and say what each costs.

    Each network is rated on the ladder, with equal simulations and in equal time, its work is
    counted as by `models cost`, and its moves are timed. study.json has all figures; the plots show
    Elo with 95 % intervals against spikes, energy and time. Energy comes from two models, always
    both; nothing of it is measured.

    Without a choice of networks: leaky ones of 1, 2, 4 and 8 ticks, integer ones of 2 and 4 levels,
    and the ReLU baseline. Settings begin as those of the campaign that played the games. Each
    network and each rating is kept when it is done; after Ctrl-C, the same command goes on.

    chess-snn study spikes --games campaigns/cpu-001 --minutes-per-network 3 --rating-games 40

    chess-snn study pair --games campaigns/cpu-001 --pair

    chess-snn study wide --games imports/lichess --variant narrow:net.channels=24 --variant
    wide:net.channels=48,training.learning_rate=0.004
    """
    refuse_in_campaign(out, "folder")
    is_default = not (ticks or levels or penalties or relu or pair or variant)
    variants = make_variants(
        _base(games[0], preset, config, set or []),
        ticks=_numbers("--ticks", _DEFAULT_TICKS if is_default else ticks, int),
        levels=_numbers("--levels", _DEFAULT_LEVELS if is_default else levels, int),
        penalties=_numbers("--penalties", penalties, float),
        relu=relu or is_default, pair=pair, texts=variant or [],
    )
    if match_games is None:
        match_games = _DEFAULT_MATCH_GAMES if pair else 0
    request = StudyRequest(
        tuple(games), variants, tuple(_numbers("--simulations", simulations, int)),
        equal_time=equal_time, rating_games=rating_games, match_games=match_games,
        minutes=minutes_per_network, seed=seed, threads=threads, device=device,
    )
    found = read_ladder()
    engines = EngineSettings(threads, answer_s=ENGINE_S, start_s=ENGINE_S)
    available = available_players(found, tuple(found.players), engines, with_other_versions=True)
    if available.notice is not None:
        print_message(available.notice)
    with stoppable(f"stopped; the same command goes on, and what is finished is kept in {out}"):
        plan = begin_study(out, request, print_message)
        run = StudyRun(plan, found, available, engines, print_message, work_bar)
        results = run.run()
    body = results_json(results)
    pictures = study_plots(body) | {RATINGS_PLOT: ladder_svg(found, results.ratings)}
    files = {RESULTS: json.dumps(body, indent=2) + "\n"} | pictures
    for name, text in files.items():
        if not (out / name).exists() or (out / name).read_text(encoding="utf-8") != text:
            write_text(out / name, text)
    _print(body)
    print_message(f"written: {', '.join(str(out / name) for name in files)}")
    record_study(body, [out / name for name in files])


def _base(
    games: Path, preset: str | None, file: Path | None, settings: Sequence[Setting]
) -> CampaignConfig:
    """The settings of all networks: those that are given, else those of the campaign."""
    if preset is None and file is None and (games / CONFIG_FILE).is_file():
        return changed_config(CampaignFolder.open(games).config, settings)
    return load_config(preset, file, settings)


def _numbers(option: str, text: str, kind: Callable[[str], Number]) -> list[Number]:
    try:
        return [kind(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise UsageError(f"{option} takes numbers with commas between, got {text!r}") from error


def _print(body: Json) -> None:
    """Every table fits into a terminal of 80 columns."""
    print_message(
        "Energies come from two models, side by side; none of them is measured. Times are "
        f"measured, with {body['threads']} threads."
    )

    def losses(form: str, name: str) -> Callable[[Json], str]:
        return lambda row: "" if row["losses"][name] is None else format(row["losses"][name], form)

    def of_position(model: str) -> Callable[[Json], str]:
        return lambda row: joules_text(
            next(iter(row["cost"]["energy"][model]["of"].values()))["position_pj"]
        )

    console.print(table_of("Networks, on held-out games and for one evaluation", body["networks"], {
        "network": lambda row: row["name"],
        "neurons": lambda row: row["neurons"],
        "policy\nloss": losses(".3f", "policy_loss"),
        "value\nloss": losses(".3f", "value_loss"),
        "moves": losses(".1%", "policy_accuracy"),
        "spikes": lambda row: si_text(row["cost"]["counts"]["position"]["active"]),
        "active": lambda row: f"{1 - row['cost']['activation_sparsity']:.1%}",
        "45 nm\n(model)": of_position("convention"),
        "fair\n(model)": of_position("fair"),
    }, left=("network", "neurons")))
    console.print(table_of(f"{body['scale']}, and a move", body["rows"], {
        "network": lambda row: row["variant"],
        "simu-\nlations": lambda row: f"{row['simulations']:,}",
        "Elo": lambda row: f"{'~' if row['approximate'] else ''}{row['elo']:.0f}",
        "95 % interval": _interval,
        "equal\ntime": lambda row: "yes" if row["is_equal_time"] else "",
        "ms,\nmeasured": lambda row: f"{row['ms_per_move_measured']:,.1f}",
        "45 nm\n(model)": lambda row: _of_move(row, "convention"),
        "fair\n(model)": lambda row: _of_move(row, "fair"),
    }, left=("network",)))
    if any(row["approximate"] for row in body["rows"]):
        print_message(APPROXIMATE_NOTE)
    if body["matches"]:
        console.print(table_of(
            f"Matches against {body['matches'][0]['against']}", body["matches"], {
                "network": lambda row: row["variant"],
                "simulations": lambda row: f"{row['simulations']} : {row['against_simulations']}",
                "equal\ntime": lambda row: "yes" if row["is_equal_time"] else "",
                "games": lambda row: f"{row['num_games']}",
                "score": lambda row: f"{row['score']:.3f}",
                "95 % interval": lambda row: f"{row['score_low']:.3f} to {row['score_high']:.3f}",
                "better": lambda row: f"{row['likelihood_of_superiority']:.1%}",
            }, left=("network",),
        ))
    if any(network["cost"]["activation"] == "relu" for network in body["networks"]):
        print_message(
            "Of ReLU networks, the modelled energy is that in 8 bits with zeros skipped; the plots "
            "have int8 and float32 too."
        )
    for name, text in ENERGY_MODELS.items():
        print_message(f"{'45 nm' if name == 'convention' else name} (model): {text}")


def _of_move(row: Json, model: str) -> str:
    """Energy of a move in the network's own execution; for a baseline, in 8 bits without zeros."""
    return joules_text(next(iter(row[f"{model}_model_pj"]["move"].values())))


def _interval(row: Json) -> str:
    elo = Estimate.of_json(row["elo"], row["elo_low"], row["elo_high"])
    return interval_text(elo.low, elo.high)
