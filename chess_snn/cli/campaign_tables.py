"""Finished iterations and matches as tables, from rows of ``campaign.results``."""

from collections.abc import Callable, Sequence
from typing import Final

from rich.table import Table

from chess_snn.campaign import CampaignFolder, Receipt
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.strength.matches import read_final_matches
from chess_snn.campaign.viewing.alarms import find_alarms
from chess_snn.campaign.viewing.lines import (
    climb_line,
    elo_interval,
    faults_text,
    figure,
    gate_text,
    interval,
    is_faulty,
    points_interval,
)
from chess_snn.campaign.viewing.results import opponents_of, result_rows
from chess_snn.cli.console import console, make_table, print_message
from chess_snn.evaluation.solo import interval_text
from chess_snn.games import get_game
from chess_snn.types import Json

Columns = dict[str, Callable[[Json], str]]
"""What stands in a cell, by the column's heading."""


def column(name: str, form: str) -> Callable[[Json], str]:
    """The cells of one figure."""
    return lambda row: figure(row, name, form)


def percent(name: str) -> Callable[[Json], str]:
    """The cells of one share, as whole per cents."""
    return lambda row: f"{100 * row[name]:.0f}"


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
    "cut %": percent("cut_rate"),
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


def columns_of(config: CampaignConfig, columns: Columns) -> Columns:
    """``columns``, with a heading for points where a game has them in place of outcomes."""
    if get_game(config.campaign.game).spec.num_players == 2:
        return columns
    return {"points" if name == _OUTCOMES else name: cell for name, cell in columns.items()}


def strength_columns(config: CampaignConfig) -> Columns:
    """Scores with their intervals, and won positions; of a game of one player its points."""
    is_solo = get_game(config.campaign.game).spec.num_players == 1
    opponents = opponents_of(config)

    def against(opponent: str) -> Callable[[Json], str]:
        return lambda row: interval(row, opponent)

    return {
        "iter": column("iteration", "d"),
        "generation": column("generation", "d"),
        **({"points": points_interval, "median": column("points_median", ",.0f"),
            "most": column("points_best", ",.0f")} if is_solo else {}),
        "score": column("score", ".3f"),
        "Elo, own games": elo_interval,
        "Elo, ladder": lambda row: elo_interval(row, "ladder_elo"),
        **{opponent: against(opponent) for opponent in opponents},
        "champion then": gate_text,
        **({} if is_solo else {"conversion": column("conversion_rate", ".3f")}),
        **_GENERATION,
    }


def rows_table(
    title: str, rows: Sequence[Json], columns: Columns, *, lean: bool = False
) -> Table:
    """A line a row; ``lean`` as in :func:`make_table`."""
    table = make_table(title, *columns, lean=lean)
    for row in rows:
        table.add_row(*(cell(row) for cell in columns.values()))
    return table


def matches_table(title: str, matches: Sequence[Json], *, lean: bool = False) -> Table:
    """A line a match, from summaries of matches; ``lean`` as in :func:`make_table`."""
    if any("points" in match for match in matches):
        return _points_table(title, matches, lean)
    has_faults = any(map(is_faulty, matches))
    faults = ["forfeits\nof both", "void"] if has_faults else []
    headings = ["player", "against", "W-D-L", "capped", *faults, "score", "95 % interval"]
    table = make_table(title, *headings, lean=lean)
    for match in matches:
        table.add_row(
            match["player_a"],
            match["player_b"],
            f"{match['wins']}-{match['draws']}-{match['losses']}",
            str(match["capped"]),
            *(faults_text(match) if has_faults else ()),
            f"{match['score']:.3f}",
            f"{match['score_low']:.3f} to {match['score_high']:.3f}",
        )
    return table


def _points_table(title: str, matches: Sequence[Json], lean: bool) -> Table:
    """Of matches in a game of one player: mean points of both, and how far ahead a is."""
    table = make_table(
        title, "player", "against", "score", "points", "theirs", "ahead (95 %)", lean=lean
    )
    for match in matches:
        points = match["points"]
        table.add_row(
            match["player_a"], match["player_b"], f"{match['score']:.3f}",
            f"{points['a']['mean']:,.0f}", f"{points['b']['mean']:,.0f}",
            interval_text(points["ahead"]),
        )
    return table


def print_summary(folder: CampaignFolder, receipts: Sequence[Receipt]) -> None:
    """The finished iterations as a table, the newest matches as another, and the alarms."""
    if not receipts:
        return
    rows = result_rows(folder.config, receipts)
    columns = columns_of(folder.config, SHORT_COLUMNS)
    console.print(rows_table(f"campaign {folder.name}", rows, columns, lean=True))
    evaluated = [receipt for receipt in receipts if receipt.matches]
    if evaluated:
        title = f"generation {evaluated[-1].training.generation}"
        console.print(matches_table(title, evaluated[-1].matches))
        if (climb := evaluated[-1].climb) is not None:
            print_message(climb_line(climb))
    if gates := [receipt.promotion for receipt in receipts if receipt.promotion is not None]:
        print_message(f"The last candidate: {gates[-1]}.")
    if finals := read_final_matches(folder):
        console.print(matches_table("at the end of the campaign", finals))
    print_message(
        "Value loss on held-out games: "
        f"{figure(rows[0], 'holdout_value_loss_before', '.3f')} before the first training, "
        f"{figure(rows[-1], 'holdout_value_loss_after', '.3f')} after the last."
    )
    for alarm in find_alarms([receipt.metrics() for receipt in receipts]):
        print_message(f"ALARM {alarm}")
