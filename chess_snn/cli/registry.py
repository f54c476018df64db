"""``chess-snn models``: the networks of a campaign; what is known of them, who is champion."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from chess_snn.cli.console import (
    console,
    print_json,
    print_message,
    print_notice,
    print_rows,
    table_of,
)
from chess_snn.cli.cost import cost_command
from chess_snn.cli.options import AsJsonOption, CampaignArgument, complete_campaign
from chess_snn.cli.orchestration import ask_mlflow, registered_models
from chess_snn.errors import UsageError
from chess_snn.known import KNOWN_MODELS, Format
from chess_snn.later import to_run
from chess_snn.wording import counted

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.campaign import CampaignFolder, campaign_lock, read_receipts
    from chess_snn.campaign.models.exporting import copy_model, export_for_others, export_model
    from chess_snn.campaign.models.model import Model
    from chess_snn.campaign.models.references import find_model, split_generation
    from chess_snn.campaign.models.versions import (
        NetworkVersion,
        campaign_versions,
        describe,
        version_of,
    )
    from chess_snn.campaign.store.match_facts import RatingFacts
    from chess_snn.campaign.store.receipt_parts import VERDICT_WORDS, PromotionFacts
    from chess_snn.campaign.strength.champions import HandPromotion, promote_by_hand, roll_back

_DIGITS = 8
"""Length of a digest in a table."""

app = typer.Typer(
    help="The networks of a campaign: list, show, promote, export.",
    no_args_is_help=True,
)

app.command("cost")(cost_command)
Version = Annotated[
    str, typer.Argument(help="CAMPAIGN@GENERATION, or CAMPAIGN@champion; CAMPAIGN is its newest.",
                        autocompletion=complete_campaign)
]
Why = Annotated[str, typer.Option(help="The reason, for those who ask later; needed.")]
Who = Annotated[
    str | None, typer.Option(help="Who decides; by default the name of this user.")
]


@app.command("list")
def list_versions(
    directory: Annotated[
        Path | None, typer.Argument(help="The campaign folder; without it, MLflow's registry.",
                                    autocompletion=complete_campaign)
    ] = None,
    as_json: AsJsonOption = False,
) -> None:
    """Every network of a campaign's finished iterations, or of all campaigns in MLflow's registry.

    Elo points are above the random mover, with a 95 % interval, for the search budget in the title;
    "as candidate" is what the games against the champion of its time said.

    Of the registry, the versions that have an alias and the newest others; any of them can be
    given to --model.

    chess-snn models list campaigns/cpu-001

    chess-snn models list
    """
    if directory is None:
        _list_registered(as_json=as_json)
        return
    folder = CampaignFolder.open(directory)
    versions = campaign_versions(folder)
    if as_json:
        print_json([version.to_json() for version in versions])
        return
    if not versions:
        print_message(f"{folder.path}: no iteration is finished yet, so it has no version")
        return
    console.print(_table(folder, versions))


@app.command()
def show(model: Version, as_json: AsJsonOption = False) -> None:
    """Everything that is known of one network: rating, size, spikes, games it was trained on.

    Where MLflow is installed and has the campaign, its version and aliases there too. An exported
    folder is shown as well.

    chess-snn models show campaigns/cpu-001@champion
    """
    chosen = find_model(model)
    if chosen.in_play:
        raise UsageError(
            f"{chosen.label} says how a network plays, and the facts here are of the network; "
            "leave out what stands behind #, or see its operations: chess-snn models cost"
        )
    if chosen.campaign is not None:
        version = _version(model, chosen.campaign, chosen.generation)
        entry = ask_mlflow(
            "registered_version", chosen.campaign, version.generation,
            problem="MLflow cannot be asked",
        )
        facts, rows = version.to_json() | {"registered": entry}, describe(version)
        if entry is not None:
            aliases = f" ({', '.join(entry['aliases'])})" if entry["aliases"] else ""
            rows["MLflow"] = f"version {entry['number']}{aliases}"
        champion = ", the champion" if version.is_champion else ""
        title = f"{version.campaign}, generation {version.generation}{champion}"
    elif facts := chosen.facts:
        rows = {name: str(value) for name, value in facts.items()
                if not isinstance(value, dict | list)}
        title = f"exported from {facts['campaign']}, generation {chosen.generation}"
    else:
        raise UsageError(
            f"{chosen.label} has no description; give a network of a campaign or an exported one: "
            f"{KNOWN_MODELS}"
        )
    if as_json:
        print_json(facts)
    else:
        print_rows(title, rows)


@app.command()
def promote(
    model: Annotated[str, typer.Argument(help="CAMPAIGN@GENERATION.")], why: Why, who: Who = None
) -> None:
    """Make a generation the champion by hand; the next candidate then plays against it.

    Kept in the campaign's folder with the name and the reason; the alias in MLflow follows. Not
    while the campaign runs: stop it first, and resume it afterwards.

    chess-snn models promote campaigns/cpu-001@12 --why "plays endings better"
    """
    _, asked = split_generation(model)
    if asked is None:
        raise UsageError(
            f"{model!r} does not say which generation is to be champion; write CAMPAIGN@GENERATION"
        )
    chosen = find_model(model)
    assert chosen.campaign is not None
    assert chosen.generation is not None
    with campaign_lock(chosen.campaign):
        choice = promote_by_hand(chosen.campaign, chosen.generation, _name(who), why)
    _announce(chosen.campaign, choice)


@app.command()
def rollback(directory: CampaignArgument, why: Why, who: Who = None) -> None:
    """Make the champion before the present one champion again.

    Done again, it goes back one more. As with promote, the campaign must not be running.

    chess-snn models rollback campaigns/cpu-001 --why "loses to the old one"
    """
    folder = CampaignFolder.open(directory)
    with campaign_lock(folder):
        choice = roll_back(folder, _name(who), why)
    _announce(folder, choice)


@app.command()
def export(
    model: Version, out: Annotated[Path, typer.Option(help="New folder for the network.")],
    notes: Annotated[
        Path | None, typer.Option(help="Markdown to add to the card of a campaign's network.")
    ] = None,
    file_format: Annotated[
        Format, typer.Option("--format", help="nir or onnx: for other libraries, without a card.")
    ] = Format.SAFETENSORS,
) -> None:
    """Write a network to a folder of its own, which other commands and machines can play.

    Weights (safetensors), settings, a card for people, and a manifest with their digests. What
    stands behind # as search.NAME=VALUE becomes a setting of the copy.

    chess-snn models export campaigns/cpu-001@champion --out strongest

    chess-snn play --model strongest

    snnTorch, SpikingJelly and Norse read nir, and onnxruntime reads onnx: docs/spikes.md shows how.

    chess-snn models export shipped/chess --out chess-nir --format nir
    """
    chosen = find_model(model)
    is_copy, play = file_format is Format.SAFETENSORS, chosen.in_play
    if play.ticks if is_copy else play.search:
        raise UsageError(
            f"{chosen.label} is a way to play a network; export it without what stands behind #, "
            "and put that behind the copy in play"
        )
    if not is_copy:
        if notes is not None:
            raise UsageError(f"--format {file_format} writes no card; leave out --notes")
        _export_for_others(model, chosen, out, file_format)
        return
    if chosen.campaign is not None:
        generation = _version(model, chosen.campaign, chosen.generation).generation
        text = "" if notes is None else notes.read_text()
        name = export_model(chosen.campaign, generation, out, text, play.search).campaign
    elif notes is not None or play:
        raise UsageError(
            f"{model!r} lies in no campaign and has its card and settings; leave out --notes and "
            "what stands behind #"
        )
    elif chosen.generation is not None:
        facts = copy_model(chosen.weights.parent, out)  # an exported or a registered network
        name, generation = facts["campaign"], facts["generation"]
    else:
        raise UsageError(
            f"{model!r} has no generation; give a network of a campaign, an exported or a "
            "registered one"
        )
    print_message(
        f"{name}, generation {generation}, is in {out}. Play it: chess-snn play --model {out}"
    )


def _export_for_others(text: str, chosen: Model, out: Path, file_format: Format) -> None:
    """Write NIR or ONNX files, of any network, and say where."""
    version = {name: chosen.facts[name] for name in ("campaign", "generation") if chosen.facts}
    if chosen.campaign is not None:
        known = _version(text, chosen.campaign, chosen.generation)
        ticks = f"#ticks={chosen.in_play.ticks}" if chosen.in_play.ticks else ""
        chosen = find_model(f"{chosen.campaign.path}@{known.generation}{ticks}")
        version = {"campaign": known.campaign, "generation": known.generation}
    export_for_others(chosen.load_stored(), out, file_format, version)
    print_message(f"{chosen.label} is in {out}, as {file_format}. docs/spikes.md shows its use.")


def _version(text: str, folder: CampaignFolder, generation: int | None) -> NetworkVersion:
    """The version asked for; of a campaign alone, that of its newest finished iteration."""
    if (num_finished := len(read_receipts(folder))) and Path(text).absolute() == folder.path:
        generation = num_finished
    if generation is None:
        raise UsageError(
            f"{text!r} is not a generation of {folder.path}; write CAMPAIGN@GENERATION"
        )
    return version_of(folder, generation)


def _name(who: str | None) -> str:
    try:
        return who or getpass.getuser()
    except (KeyError, OSError) as error:
        raise UsageError("this user has no name on this machine; give one with --who") from error


def _elo_text(rating: RatingFacts | None) -> str:
    return "" if rating is None else rating.elo_text


def _table(folder: CampaignFolder, versions: list[NetworkVersion]) -> Table:
    """Fits into a terminal of 80 columns."""
    newest, has_ladder = versions[-1], any(version.ladder_test for version in versions)
    title = (
        f"{folder.name}: {newest.size}, {newest.parameters:,} parameters, "
        f"{counted(newest.ticks, 'tick')}, {newest.precision}; evaluated with "
        f"{counted(newest.simulations, 'simulation')}"
    )
    return table_of(title, versions, {
        "generation": lambda version: f"{version.generation}"
            + (" champion" if version.is_champion else "")
            + (" removed" if version.is_removed else ""),
        "Elo, ladder" if has_ladder else "Elo, own games": lambda version:
            _elo_text(version.ladder_test if has_ladder else version.rating),
        "score": lambda version: "" if version.score is None else f"{version.score:.3f}",
        "as candidate": lambda version: _candidacy(version.promotion),
        "spikes": lambda version:
            "" if version.spike_rate is None else f"{version.spike_rate:.1%}",
        "digest": lambda version: version.digest[:_DIGITS],
    })


def _list_registered(*, as_json: bool) -> None:
    versions = registered_models()
    if not versions:
        print_notice(
            "no network is registered: MLflow has no store here, or is not installed. Every "
            "campaign registers its own; those of one: chess-snn models list CAMPAIGN"
        )
    if as_json:
        print_json(versions)
    elif versions:
        print_rows("registered networks, newest first", {
            version["address"]: ", ".join([
                version["campaign"], f"generation {version['generation']}",
                version["strength"] or "not measured",
                *(f"@{alias}" for alias in version["aliases"]),
            ])
            for version in versions
        })


def _candidacy(played: PromotionFacts | None) -> str:
    if played is None:
        return ""
    by_all = played.elo_ahead
    decided = f"{played.score:.3f} ({played.games})" if by_all is None else f"{by_all:+.0f} Elo"
    return f"{VERDICT_WORDS[played.verdict]} {decided}"


def _announce(folder: CampaignFolder, choice: HandPromotion) -> None:
    print_message(f"The champion of {folder.name} is generation {choice.generation}.")
    line = ask_mlflow(
        "promote_registered", folder, choice.generation,
        problem="not recorded in MLflow yet",
        done="MLflow's alias of the campaign's champion is moved.",
    )
    if line is not None:
        print_message(line)
