"""Finished iterations and matches as lines and tables, from rows of ``campaign.results``."""

from collections.abc import Callable, Sequence
from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.receipts import VERDICT_NUMBERS, VERDICT_WORDS
from chess_snn.campaign.viewing.results import opponents_of, score_column
from chess_snn.evaluation.solo import interval_text
from chess_snn.games import get_game
from chess_snn.types import Json

NOT_MEASURED: Final = ""
"""Stands where there is no figure."""

Columns = dict[str, Callable[[Json], str]]
"""What stands in a cell, by the column's heading."""

_S_PER_MINUTE: Final = 60


def figure(row: Json, name: str, form: str) -> str:
    """One figure of a row, formatted; :data:`NOT_MEASURED` where it is None."""
    value = row[name]
    return NOT_MEASURED if value is None else format(value, form)


def column(name: str, form: str) -> Callable[[Json], str]:
    """The cells of one figure."""
    return lambda row: figure(row, name, form)


def percent(name: str) -> Callable[[Json], str]:
    """The cells of one share, as whole per cents."""
    return lambda row: f"{100 * row[name]:.0f}"


def interval(row: Json, opponent: str) -> str:
    """Score against ``opponent`` and its 95 % interval: ``0.960 (0.805 to 0.993)``."""
    name = score_column(opponent)
    if row[name] is None:
        return NOT_MEASURED
    return f"{row[name]:.3f} ({row[name + '_low']:.3f} to {row[name + '_high']:.3f})"


def points_interval(row: Json) -> str:
    """Mean points of the evaluation and their 95 % interval: ``11,907 (11,267 to 12,548)``."""
    if row.get("points") is None:
        return NOT_MEASURED
    ends = {end: row[f"points_{end}"] for end in ("low", "high")}
    return interval_text({"mean": row["points"], **ends})


def elo_interval(row: Json, rating: str = "elo") -> str:
    """Elo above the random mover and its 95 % interval: ``312 (250 to 380)``; or its one bound.

    Args:
        row: of the results.
        rating: ``elo`` by the campaign's own games, ``ladder_elo`` on the ladder's scale.
    """
    elo, low, high = (row.get(rating + end) for end in ("", "_low", "_high"))
    if elo is not None:
        ends = ("-inf" if low is None else f"{low:.0f}", "inf" if high is None else f"{high:.0f}")
        return f"{elo:.0f} ({ends[0]} to {ends[1]})"
    if low is not None:
        return f"above {low:.0f}"
    return NOT_MEASURED if high is None else f"below {high:.0f}"


def duration(seconds: float) -> str:
    """``3:05:09``, or ``5:09`` below an hour."""
    minutes, rest = divmod(round(seconds), _S_PER_MINUTE)
    hours, minutes = divmod(minutes, _S_PER_MINUTE)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def gate_text(row: Json) -> str:
    """``accepted 0.633 (30)``: verdict, score against the champion, games; empty without games."""
    if row["gate_verdict"] is None:
        return NOT_MEASURED
    words = {VERDICT_NUMBERS[verdict]: word for verdict, word in VERDICT_WORDS.items()}
    return f"{words[row['gate_verdict']]} {row['gate_score']:.3f} ({row['gate_games']:.0f})"


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
    """A line a row; ``lean`` is without lines between columns, so that more fit side by side."""
    table = _table(title, list(columns), lean)
    for row in rows:
        table.add_row(*(cell(row) for cell in columns.values()))
    return table


def matches_table(title: str, matches: Sequence[Json], *, lean: bool = False) -> Table:
    """A line a match, from summaries of matches; ``lean`` as in :func:`rows_table`."""
    if any("points" in match for match in matches):
        return _points_table(title, matches, lean)
    has_faults = any(map(is_faulty, matches))
    faults = ["forfeits\nof both", "void"] if has_faults else []
    headings = ["player", "against", "W-D-L", "capped", *faults, "score", "95 % interval"]
    table = _table(title, headings, lean)
    for match in matches:
        table.add_row(
            match["player_a"],
            match["player_b"],
            f"{match['wins']}-{match['draws']}-{match['losses']}",
            str(match["capped"]),
            *(_faults(match) if has_faults else ()),
            f"{match['score']:.3f}",
            f"{match['score_low']:.3f} to {match['score_high']:.3f}",
        )
    return table


def _points_table(title: str, matches: Sequence[Json], lean: bool) -> Table:
    """Of matches in a game of one player: mean points of both, and how far ahead a is."""
    table = _table(title, ["player", "against", "score", "points", "theirs", "ahead (95 %)"], lean)
    for match in matches:
        points = match["points"]
        table.add_row(
            match["player_a"], match["player_b"], f"{match['score']:.3f}",
            f"{points['a']['mean']:,.0f}", f"{points['b']['mean']:,.0f}",
            interval_text(points["ahead"]),
        )
    return table


def is_faulty(match: Json) -> bool:
    """Whether a game was forfeited, and counts as lost, or is void and counts for nobody."""
    return any(match.get(name, 0) for name in ("forfeits_a", "forfeits_b", "voided"))


def _faults(match: Json) -> tuple[str, str]:
    """``1-0`` forfeits of the player and its opponent; games that are void."""
    forfeits = f"{match.get('forfeits_a', 0)}-{match.get('forfeits_b', 0)}"
    return forfeits, str(match.get("voided", 0))


def iteration_line(row: Json) -> str:
    """The figures of one iteration that matter."""
    score = "" if row["score"] is None else f", score {row['score']:.3f}"
    if elo_interval(row) != NOT_MEASURED:
        score += f", Elo by own games {elo_interval(row)}"
    if (ladder := elo_interval(row, "ladder_elo")) != NOT_MEASURED:
        score += f", Elo on the ladder {ladder}"
    if points_interval(row) != NOT_MEASURED:
        score = f", {points_interval(row)} points{score}"
    outcomes = (
        f"{figure(row, 'self_play_points', ',.0f')} points on average"
        if row["draw_rate"] is None else f"draws {row['draw_rate']:.0%}"
    )
    gate = f", against the champion {told}" if (told := gate_text(row)) else ""
    champion = ", new champion" if row["champion"] == row["generation"] else ""
    return (
        f"iteration {row['iteration']} ({row['progress']:.0%} of the campaign): "
        f"{row['games']:,} games, {row['positions_per_s']:,.0f} positions/s, "
        f"{outcomes}, held-out value loss "
        f"{figure(row, 'holdout_value_loss_before', '.3f')} -> "
        f"{figure(row, 'holdout_value_loss_after', '.3f')}{score}{gate}{champion}"
    )


def match_line(match: Json) -> str:
    """One match at the end of a campaign."""
    forfeits, void = _faults(match)
    faults = f"; forfeits {forfeits}, {void} void" if is_faulty(match) else ""
    if "points" in match:
        own, ahead = (interval_text(match["points"][side]) for side in ("a", "ahead"))
        faults = f"; {own} points, ahead by {ahead}{faults}"
    return (
        f"{match['player_a']} against {match['player_b']}: "
        f"{match['wins']}-{match['draws']}-{match['losses']}, score {match['score']:.3f} "
        f"({match['score_low']:.3f} to {match['score_high']:.3f}){faults}"
    )


def climb_line(climb: Json) -> str:
    """Where a generation stands on the ladder, and what it scored on the rungs about it."""
    ends = (climb["elo_low"], climb["elo_high"])
    interval = " to ".join("unknown" if end is None else f"{end:.0f}" for end in ends)
    elo = "unknown" if climb["elo"] is None else f"{climb['elo']:.0f}"
    rungs = ", ".join(
        f"{rung['score']:.2f} against {rung['player']} ({rung['elo']:.0f})"
        for rung in climb["rungs"] if rung["player"] in climb["bracket"]
    )
    return (
        f"{climb['player']} on the ladder: Elo {elo} ({interval}) by {climb['num_games']} games; "
        f"{rungs}"
    )


def _table(title: str, headings: Sequence[str], lean: bool) -> Table:
    # Text, so that brackets in a folder's name are not taken for markup.
    table = Table(
        title=Text(title),
        title_justify="left",
        box=box.SIMPLE_HEAD if lean else box.HEAVY_HEAD,
        padding=(0, 0, 0, 1) if lean else (0, 1),
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    return table
