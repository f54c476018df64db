"""The ladder, and what a check of it found, as tables."""

from collections.abc import Iterator, Sequence

from rich.table import Table

from chess_snn.evaluation import DECREED_RATINGS
from chess_snn.evaluation.ladder import CheckedScore, Ladder
from chess_snn.evaluation.ratings import interval_text
from chess_snn.types import Json


def ladder_table(ladder: Ladder) -> Table:
    """The players, the strongest first, with their ratings and intervals."""
    table = Table(title="Elo above random")
    for heading in ("player", "Elo", "95 % interval", "games", "decreed"):
        table.add_column(heading, justify="right" if heading != "player" else "left")
    for rung in reversed(ladder.rungs):
        decreed = DECREED_RATINGS.get(rung.player)
        table.add_row(
            rung.player, f"{rung.elo:.0f}", interval_text(rung.elo_low, rung.elo_high),
            f"{rung.num_games:,}",
            "" if decreed is None else str(decreed),
        )
    return table


def ladder_facts(ladder: Ladder) -> Iterator[str]:
    """Lines on how the ladder was made, and how far it can be trusted."""
    origin, ratings = ladder.origin, ladder.ratings
    yield (
        f"{ladder.num_games:,} games of {len(ladder.pairings)} pairings, cut after "
        f"{ladder.max_plies} plies; {origin['date'][:10]}, {ladder.engine or 'no engine'}, "
        f"{origin['command']}"
    )
    yield (
        f"Playing white is worth {ratings['colour_advantage']['value']:.0f} points; "
        f"{ratings['draw_rate']['value']:.0%} of games between equals are drawn or cut."
    )
    yield from _prediction(ladder.held_out)
    if any(name in ladder.players for name in DECREED_RATINGS):
        yield (
            "Decreed: what published systems call these opponents, on a scale of their own where "
            f"random is {DECREED_RATINGS['random']}."
        )


def checked_table(rows: Sequence[CheckedScore]) -> Table:
    """Scores of a check beside the ladder's, and whether they are within their intervals."""
    table = Table(title="check of the ladder")
    for heading in ("player", "against", "pairs", "ladder", "now", "must lie in", ""):
        table.add_column(
            heading, justify="left" if heading in {"player", "against", ""} else "right"
        )
    for row in rows:
        table.add_row(
            row.player, row.opponent or "all", f"{row.num_pairs:,}", f"{row.ladder_score:.3f}",
            f"{row.score:.3f}", f"{row.low:.3f} to {row.high:.3f}",
            "ok" if row.is_within else "OUTSIDE",
        )
    return table


def _prediction(held_out: Json) -> Iterator[str]:
    loss, constant = held_out["log_loss"], held_out["constant_log_loss"]
    if loss is None or constant is None:
        return
    yield (
        f"Of {held_out['num_predicted']:,} games that were held out, ratings of the others predict "
        f"each with a loss of {loss:.3f} nats; always the same chances, {constant:.3f}."
    )
