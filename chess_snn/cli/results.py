"""``chess-snn results`` and ``ratings``: a campaign's iterations, matches and players as tables."""

import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from chess_snn.campaign import CampaignFolder, Receipt, read_receipts
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.notes import missing_notices
from chess_snn.campaign.strength.matches import read_final_matches
from chess_snn.campaign.strength.ratings import ANCHOR, rate_campaign
from chess_snn.campaign.viewing.alarms import find_alarms
from chess_snn.campaign.viewing.lines import (
    elo_interval,
    faults_text,
    figure,
    gating_text,
    interval,
    is_faulty,
    ladder_test_line,
    points_interval,
)
from chess_snn.campaign.viewing.results import (
    opponents_of,
    result_rows,
    results_csv,
    results_json,
)
from chess_snn.cli.console import console, print_json, print_message, table_of
from chess_snn.cli.options import AsJsonOption, CampaignArgument, output_option
from chess_snn.data import write_text
from chess_snn.errors import CampaignError, UsageError
from chess_snn.evaluation.ratings.result import Rating, interval_text
from chess_snn.evaluation.solo import interval_text as points_text
from chess_snn.games import get_game
from chess_snn.types import Json

_FILE_WIDTH: Final = 240
"""Characters of a line where there is no terminal: enough for every column."""

Columns = dict[str, Callable[[Json], str]]
"""The cells of a row, by the column's heading."""


def column(name: str, form: str) -> Callable[[Json], str]:
    """The cells of one figure."""
    return lambda row: figure(row, name, form)


def _outcomes(row: Json) -> str:
    """White's wins, draws and black's wins; of a game of one player, points."""
    if row["draw_rate"] is None:
        return figure(row, "self_play_points", ",.0f")
    rates = (row["white_rate"], row["draw_rate"], row["black_rate"])
    return "/".join(f"{100 * rate:.0f}" for rate in rates)


_OUTCOMES: Final = "W/D/B %"
_ITERATION: Final[Columns] = {"iter": column("iteration", "d"), "games": column("games", ",")}
_GENERATION: Final[Columns] = {"champion": lambda row: f"gen {row['champion']}"}

SHORT_COLUMNS: Final[Columns] = {
    **_ITERATION,
    "plies": column("plies_mean", ".0f"),
    _OUTCOMES: _outcomes,
    "value\nloss": column("holdout_value_loss_after", ".3f"),
    "score": column("score", ".3f"),
    "Elo, own\ngames (95 %)": elo_interval,
    **_GENERATION,
    "s": column("iteration_s", ",.0f"),
}
"""Fit into a terminal of 80 columns."""

LEARNING_COLUMNS: Final[Columns] = {
    **_ITERATION,
    _OUTCOMES: _outcomes,
    "cut %": lambda row: f"{100 * row['truncated_rate']:.0f}",
    "plies": column("plies_mean", ".0f"),
    "pos/s": column("positions_per_s", ",.0f"),
    "policy\nloss": column("policy_loss", ".3f"),
    "value\nloss": column("value_loss", ".3f"),
    "held\nout": column("holdout_value_loss_after", ".3f"),
    "entropy": column("policy_entropy", ".2f"),
    "play\ns": column("self_play_s", ",.0f"),
    "train\ns": column("training_s", ",.0f"),
    "eval\ns": column("evaluation_s", ",.0f"),
    "all\ns": column("iteration_s", ",.0f"),
    **_GENERATION,
}
"""All of self-play and training, and the seconds of each stage."""


def results_command(
    directory: CampaignArgument,
    last: Annotated[
        int | None, typer.Option(min=1, help="Show only so many iterations, the newest.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: every iteration and the final matches.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: a line an iteration.")] = False,
    out: Annotated[
        Path | None, output_option("Write to this file; else to standard output.")
    ] = None,
) -> None:
    """Show every finished iteration of a campaign, from its folder alone.

    The names of columns in JSON and CSV stay as they are; what was not measured is null or empty.

    chess-snn results campaigns/cpu-001 --last 10

    chess-snn results campaigns/cpu-001 --csv --out results.csv
    """
    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other; choose one")
    folder = CampaignFolder.open(directory)
    receipts = read_receipts(folder)
    receipts = receipts[-last:] if last else receipts
    rows, finals = result_rows(folder.config, receipts), read_final_matches(folder)
    if as_json:
        text = results_json(folder, rows, finals)
    elif as_csv:
        text = results_csv(folder.config, rows)
    elif not rows:
        text = f"{folder.path}: no iteration is finished yet\n"
    else:
        faulty = [match for receipt in receipts for match in receipt.matches if is_faulty(match)]
        tables = _tables(folder, rows, faulty, finals)
        is_shown = out is None and console.is_terminal
        buffer = io.StringIO()
        lines = console if is_shown else Console(
            file=buffer, width=_FILE_WIDTH, highlight=False, color_system=None
        )
        for table in tables:
            lines.print(table)
        text = buffer.getvalue()
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)
    for notice in missing_notices(folder):
        typer.echo(notice, err=True)  # so that a table or JSON can be taken as it is


def _tables(
    folder: CampaignFolder, rows: Sequence[Json], faulty: Sequence[Json], finals: Sequence[Json]
) -> list[Table]:
    """Learning, strength of the generations that were evaluated, and the final matches.

    Matches in which a player failed stand before those, if there are any.
    """
    learning = columns_of(folder.config, LEARNING_COLUMNS)
    tables = [table_of(f"campaign {folder.name}", rows, learning)]
    if evaluated := [row for row in rows if row["score"] is not None]:
        columns = strength_columns(folder.config)
        tables.append(table_of("score (95 % interval)", evaluated, columns))
    if faulty:
        tables.append(matches_table("matches with games that were forfeited or void", faulty))
    if finals:
        tables.append(matches_table("at the end of the campaign", finals))
    return tables


def columns_of(config: CampaignConfig, columns: Columns) -> Columns:
    """``columns``, with a heading for points where a game has them in place of outcomes."""
    if get_game(config.campaign.game).spec.num_players == 2:
        return columns
    return {"points" if name == _OUTCOMES else name: cell for name, cell in columns.items()}


def strength_columns(config: CampaignConfig) -> Columns:
    """Scores with their intervals, and won positions; of a game of one player its points."""
    is_solo = get_game(config.campaign.game).spec.num_players == 1
    return {
        "iter": column("iteration", "d"),
        "generation": column("generation", "d"),
        **({"points": points_interval, "median": column("points_median", ",.0f"),
            "most": column("points_best", ",.0f")} if is_solo else {}),
        "score": column("score", ".3f"),
        "Elo, own games": elo_interval,
        "Elo, ladder": lambda row: elo_interval(row, "ladder_elo"),
        **{opponent: partial(interval, opponent=opponent) for opponent in opponents_of(config)},
        "champion then": gating_text,
        **({} if is_solo else {"conversion": column("conversion_rate", ".3f")}),
        **_GENERATION,
    }


def matches_table(title: str, matches: Sequence[Json]) -> Table:
    """A line a match, from summaries of matches; of a game of one player with its points."""
    players: Columns = {
        "player": lambda match: match["player_a"], "against": lambda match: match["player_b"],
    }
    if any("points" in match for match in matches):
        return table_of(title, matches, players | {
            "score": lambda match: f"{match['score']:.3f}",
            "points": lambda match: f"{match['points']['a']['mean']:,.0f}",
            "theirs": lambda match: f"{match['points']['b']['mean']:,.0f}",
            "ahead (95 %)": lambda match: points_text(match["points"]["ahead"]),
        })
    faults: Columns = {
        "forfeits\nof both": lambda match: faults_text(match)[0],
        "void": lambda match: faults_text(match)[1],
    }
    return table_of(title, matches, players | {
        "W-D-L": lambda match: f"{match['wins']}-{match['draws']}-{match['losses']}",
        "truncated": lambda match: str(match["capped"]),
        **(faults if any(map(is_faulty, matches)) else {}),
        "score": lambda match: f"{match['score']:.3f}",
        "95 % interval": lambda match: f"{match['score_low']:.3f} to {match['score_high']:.3f}",
    })


def ratings_table(title: str, ratings: Sequence[Rating]) -> Table:
    """A line a player."""
    return table_of(title, ratings, {
        "player": lambda rating: rating.player,
        "Elo": lambda rating: f"{rating.elo.value:.0f}",
        "95 % interval": lambda rating: interval_text(rating.elo.low, rating.elo.high),
        "games": lambda rating: f"{rating.num_games:,}",
        "score": lambda rating: f"{rating.score:.3f}",
    }, left=("player",))


def print_summary(folder: CampaignFolder, receipts: Sequence[Receipt]) -> None:
    """The finished iterations as a table, the newest matches as another, and the alarms."""
    if not receipts:
        return
    rows = result_rows(folder.config, receipts)
    columns = columns_of(folder.config, SHORT_COLUMNS)
    console.print(table_of(f"campaign {folder.name}", rows, columns))
    evaluated = [receipt for receipt in receipts if receipt.matches]
    if evaluated:
        title = f"generation {evaluated[-1].training.generation}"
        console.print(matches_table(title, evaluated[-1].matches))
        if (ladder_test := evaluated[-1].ladder_test) is not None:
            print_message(ladder_test_line(ladder_test))
    if gating_matches := [
        receipt.promotion for receipt in receipts if receipt.promotion is not None
    ]:
        print_message(f"The last candidate: {gating_matches[-1]}.")
    if finals := read_final_matches(folder):
        console.print(matches_table("at the end of the campaign", finals))
    print_message(
        "Value loss on held-out games: "
        f"{figure(rows[0], 'holdout_value_loss_before', '.3f')} before the first training, "
        f"{figure(rows[-1], 'holdout_value_loss_after', '.3f')} after the last."
    )
    for alarm in find_alarms([receipt.metrics() for receipt in receipts]):
        print_message(f"ALARM {alarm}")


def ratings_command(directory: CampaignArgument, as_json: AsJsonOption = False) -> None:
    """Rate a campaign's generations and opponents from all their games at once.

    Elo points above the random mover, which is 0, with 95 % intervals; who won or lost every game
    has a bound. The search budget is part of a name: gen-000012@64 had 64 simulations a move.

    chess-snn ratings campaigns/cpu-001
    """
    folder = CampaignFolder.open(directory)
    rated = rate_campaign(folder)
    if rated is None:
        raise CampaignError(
            f"{folder.path} has no match against {ANCHOR} yet; one is played every "
            f"{folder.config.evaluation.every} generations"
        )
    if as_json:
        print_json(rated.to_json())
        return
    ratings = rated.ratings
    console.print(ratings_table(f"{folder.name}: Elo above {ANCHOR}", ratings.table))
    print_message(
        f"Playing white is worth {ratings.colour_advantage.value:.0f} points; "
        f"{ratings.draw_rate.value:.0%} of games between equals are drawn or truncated."
    )
    if rated.notice is not None:
        print_message(rated.notice)
