"""Curves of a report, and the tables of its iterations, decisions and ratings."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from chess_snn.campaign.configuration.settings import PromotionRule
from chess_snn.campaign.store.receipt_parts import VERDICT_WORDS, PromotionFacts
from chess_snn.campaign.store.receipts import Receipt
from chess_snn.campaign.viewing.columns import (
    RATING_COLUMNS,
    Columns,
    iteration_columns,
    match_columns,
)
from chess_snn.campaign.viewing.figures import opponents_of, score_figure
from chess_snn.evaluation.scores import pair_interval
from chess_snn.report.curves import Chart, Point, Series, chart_html
from chess_snn.report.facts import CampaignFacts
from chess_snn.report.markup import paragraph, table, tag

_SPIKE_RATE: Final = "spike_rate"
_MOST_MARKS: Final = 12
"""New champions that a chart can show."""


def curves_html(facts: CampaignFacts) -> str:
    """All charts that have a value."""
    charts = [*_strength_charts(facts), *_learning_charts(facts)]
    return tag("div", "\n".join(filter(None, map(chart_html, charts))), class_="charts")


def _series(
    facts: CampaignFacts, name: str, column: str, over: str = "iteration"
) -> Series:
    """The column, with the interval that may stand beside it."""
    return Series(name, [
        Point(row[over], row[column], row.get(f"{column}_low"), row.get(f"{column}_high"))
        for row in facts.rows if row.get(column) is not None
    ])


def _strength_charts(facts: CampaignFacts) -> Iterator[Chart]:
    """Return charts of the evaluation of each generation."""
    champions = [receipt.champion for receipt in facts.receipts if receipt.promoted]
    chart = partial(
        Chart, over="generation", mark_name="became champion",
        marks=champions if len(champions) <= _MOST_MARKS else (),
    )
    series = partial(_series, facts, over="generation")
    if facts.is_solo:
        yield chart("Points", "mean of the evaluation, 95 % interval", [
            series("", "points"),
        ], form=",.0f")
        spec = facts.game.spec
        yield chart(f"Share of games that reached a {spec.milestone_name}", "in the evaluation", [
            series(str(milestone), f"reached_{milestone}") for milestone in spec.milestones
        ], form=".0%")
    yield chart("Elo", "points above the random mover, 95 % interval", [
        series("by its own games", "elo"), series("on the ladder", "ladder_elo"),
    ], form=".0f")
    yield chart("Score by opponent", "0 is all lost, 1 all won; 95 % interval", [
        series(opponent, score_figure(opponent).name)
        for opponent in opponents_of(facts.folder.config)
    ])
    if not facts.is_solo:
        yield chart("Simple won endings that it wins", "share", [
            series("", "conversion_rate"),
        ], form=".0%")


def _learning_charts(facts: CampaignFacts) -> Iterator[Chart]:
    """Losses, self-play and spikes by iteration."""
    series = partial(_series, facts)
    yield Chart("Policy loss", "nats; less is better", [
        series("in training", "policy_loss"),
        series("games held out", "holdout_policy_loss_after"),
    ])
    yield Chart("Value loss", "nats; less is better", [
        series("in training", "value_loss"),
        series("held out, its targets", "holdout_value_target_loss_after"),
        series("held out, final results", "holdout_value_loss_after"),
        series("reference positions", "reference_value_loss"),
    ])
    if not facts.is_solo:
        yield Chart("Best moves", "share of the reference positions", [
            series("", "reference_policy_accuracy"),
        ], form=".1%")
    if facts.is_solo:
        yield Chart("Points in self-play", "mean of games from the start", [
            series("", "self_play_points"),
        ], form=",.0f")
    else:
        yield Chart("Self-play results", "share of the games", [
            Series("decisive", [
                Point(row["iteration"], row["white_rate"] + row["black_rate"])
                for row in facts.rows
            ]),
            series("drawn or truncated", "draw_rate"),
            series("truncated", "truncated_rate"),
        ], form=".0%")
    yield Chart("Length of games", "plies, mean", [series("", "plies_mean")], form=".1f")
    yield Chart("Policy entropy", "share of a uniform policy's", [
        series("", "entropy_ratio"),
    ], form=".0%")
    yield Chart("Spike rate", "share of neurons and ticks that spike", _spikes(facts.receipts),
                form=".1%")
    yield Chart("Throughput", "positions of self-play a second", [
        series("", "positions_per_s"),
    ], form=",.0f")


def _spikes(receipts: Sequence[Receipt]) -> list[Series]:
    """All layers together, and the layers that are most and least active in the newest network."""
    history = [(receipt.iteration, receipt.training.metrics) for receipt in receipts]
    prefix = f"{_SPIKE_RATE}/"
    newest = history[-1][1] if history else {}
    layers = {
        name: rate for name, rate in newest.items()
        if name.startswith(prefix) and "/" not in name.removeprefix(prefix)  # that is a tick
    }
    chosen = {"all layers": _SPIKE_RATE}
    if layers:
        for word, name in (("most", max(layers, key=layers.__getitem__)),
                           ("least", min(layers, key=layers.__getitem__))):
            chosen[f"{word} active, {name.removeprefix(prefix)}"] = name
    return [
        Series(label, [Point(i, metrics[name]) for i, metrics in history if name in metrics])
        for label, name in chosen.items()
    ]


def tables_html(facts: CampaignFacts) -> list[str]:
    """Iterations, evaluated generations and final matches, with the figures of ``results``."""
    config = facts.folder.config
    evaluated = [row for row in facts.rows if row["score"] is not None]
    return [
        table("Iterations", facts.rows, iteration_columns(config, "learning")),
        paragraph(
            ("Points are means of games from the start. " if facts.is_solo else
             "W/D/B: games won by White, drawn or truncated, won by Black. ")
            + "Cut: truncated games. Pos/s: positions of self-play a second. s: seconds.", "note",
        ),
        table("Evaluated generations, 95 % intervals", evaluated,
              iteration_columns(config, "strength"))
        if evaluated else paragraph("No generation has been evaluated yet."),
        table("Matches at the end of the campaign", facts.finals, match_columns(facts.finals),
              left=("player", "against")) if facts.finals else "",
        table(f"All players, rated by all games; {facts.rated.ratings.anchor} is 0",
              facts.rated.ratings.table, RATING_COLUMNS) if facts.rated else "",
        paragraph(f"{facts.rated.notice}.") if facts.rated and facts.rated.notice else "",
    ]


def decisions_html(facts: CampaignFacts) -> list[str]:
    """Return the table of who became champion and why; candidates that were rejected too."""
    shown = [
        receipt for receipt in facts.receipts
        if receipt.promotion is not None or receipt.score is not None
    ]
    if not shown and not facts.by_hand:
        return [paragraph("No generation has been a candidate yet.")]
    rule = facts.folder.config.promotion.rule
    columns: Columns = {
        "iteration": lambda receipt: str(receipt.iteration),
        "candidate": lambda receipt: f"gen {receipt.training.generation}",
        "decision": lambda receipt: _decision(receipt, rule),
        "champion then": lambda receipt: _played(receipt, lambda p: f"gen {p.champion}"),
        "W-D-L": lambda receipt: _played(receipt, lambda p: f"{p.wins}-{p.draws}-{p.losses}"),
        "score (95 %)": lambda receipt: _played(receipt, _score),
        "points ahead" if facts.is_solo else "Elo ahead": lambda receipt: _played(receipt, _ahead),
        "log-likelihood ratio": lambda receipt: _played(
            receipt, lambda p: f"{p.llr:+.2f} of {p.lower:+.2f} to {p.upper:+.2f}"
        ),
        "mean score": lambda receipt: "" if receipt.score is None else f"{receipt.score:.3f}",
        "champion after": lambda receipt: f"gen {receipt.champion}",
    }
    chosen: Columns = {
        "when": lambda choice: f"after iteration {choice.num_finished - 1}",
        "champion": lambda choice: f"gen {choice.generation}",
        "how": lambda choice: choice.action,
        "who": lambda choice: choice.who,
        "why": lambda choice: choice.why,
    }
    return [
        table("Candidates", shown, columns, left=("decision",)) if shown else "",
        table("Chosen by hand", facts.by_hand, chosen, left=("how", "who", "why"))
        if facts.by_hand else "",
        paragraph("Until the first candidate, every new generation is the champion.", "note"),
    ]


def _played(receipt: Receipt, text: Callable[[PromotionFacts], str]) -> str:
    return "" if receipt.promotion is None else text(receipt.promotion)


def _decision(receipt: Receipt, rule: PromotionRule) -> str:
    if receipt.promotion is not None:
        return VERDICT_WORDS[receipt.promotion.verdict]
    verdict = VERDICT_WORDS["accept" if receipt.promoted else "reject"]
    return f"{verdict}, {'by mean score' if rule == 'score' else 'no champion to play yet'}"


def _score(played: PromotionFacts) -> str:
    low, high = pair_interval(np.array(played.pairs))
    return f"{played.score:.3f} ({low:.3f} to {high:.3f})"


def _ahead(played: PromotionFacts) -> str:
    if played.points_ahead is not None:
        return str(played.points_ahead)
    return "" if played.elo_ahead is None else f"{played.elo_ahead:+.0f}"
