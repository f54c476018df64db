"""The figures of an iteration, in one table that everything reads which shows them.

MLflow, Prefect's table, ``campaign status``, ``watch``, the report, the alarms and the files of
results take names, titles, units and places from here. A further figure is one more row of
:data:`_FIGURES`, :data:`_SOLO` or :data:`_CHESS`.

A row of figures has them by name; None stands for what was not measured.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.match_facts import MatchFacts, PointsFacts, RatingFacts
from chess_snn.campaign.store.receipt_parts import VERDICT_NUMBERS, VERDICT_WORDS
from chess_snn.campaign.store.receipts import Receipt
from chess_snn.campaign.strength.match_schedule import EARLIER
from chess_snn.campaign.viewing.figure import GROUPS, Figure, Place, Row, Value, metric_name
from chess_snn.games import GameSpec, get_game
from chess_snn.self_play import PLY_LIMIT

_LAYER: Final = "spike_rate/"
_ENDED: Final = "ended_"


def _trained(name: str) -> Value:
    return lambda receipt: receipt.training.metrics.get(name)


def _played(name: str) -> Value:
    return lambda receipt: float(getattr(receipt.statistics, name))


def _seconds(name: str) -> Value:
    return lambda receipt: float(getattr(receipt.seconds, name))


def _of(part: Callable[[Receipt], object | None], name: str) -> Value:
    """The field ``name`` of a part of the receipt; None if there is no such part."""
    def value(receipt: Receipt) -> Any:
        found = part(receipt)
        return None if found is None else getattr(found, name)

    return value


def _points_facts(receipt: Receipt) -> PointsFacts | None:
    return next((match.points.a for match in receipt.matches if match.points), None)


_DEVICES: Final = attrgetter("devices")
_PROMOTION: Final = attrgetter("promotion")


def _elo(
    name: str, title: str, heading: str, part: Callable[[Receipt], RatingFacts | None],
    *places: Place,
) -> Figure:
    return Figure(
        "strength", name, title, ".0f", _of(part, "elo"), _of(part, "elo_low"),
        _of(part, "elo_high"), better="up", places=("strength", "run", *places),
        heading=heading, chart="Elo",
    )


def _pace(count: str) -> Value:
    def value(receipt: Receipt) -> float | None:
        playing_s = receipt.playing_s
        return getattr(receipt.statistics, count) / playing_s if playing_s else None

    return value


def _verdict(receipt: Receipt) -> float | None:
    return None if receipt.promotion is None else VERDICT_NUMBERS[receipt.promotion.verdict]


def _gating_cell(row: Row) -> str:
    """``accepted +13 Elo, 0.438 (64)``: by all games, then score and games of the match."""
    verdict, score, games = (row[f"promotion_{name}"] for name in ("verdict", "score", "games"))
    if verdict is None or score is None or games is None:
        return ""
    ahead = row["promotion_elo_ahead"]
    elo = "" if ahead is None else f" {ahead:+.0f} Elo,"
    return f"{VERDICT_WORDS[_VERDICTS[verdict]]}{elo} {score:.3f} ({games:.0f})"


_VERDICTS: Final = {number: verdict for verdict, number in VERDICT_NUMBERS.items()}


_LOSS: Final = "Policy loss, nats"
_VALUE_LOSS: Final = "Value loss, nats"
_RESULTS: Final = "Results of self-play"

_FIGURES: Final = (
    _elo("ladder_elo", "Elo on the ladder", "Elo, ladder", attrgetter("ladder_test")),
    _elo("elo", "Elo by own games", "Elo, own\ngames (95 %)", attrgetter("rating"),
         "status", "watch"),
    Figure("strength", "ladder_simulations", "search budget on the ladder", ",.0f",
           _of(attrgetter("ladder_test"), "simulations")),
    Figure("strength", "score", "mean score", ".3f", attrgetter("score"), better="up",
           places=("status", "strength", "run", "watch"), heading="score"),
    Figure("strength", "promotion_verdict", "verdict on the candidate", "+.0f", _verdict,
           places=("strength",), heading="champion then", cell=_gating_cell),
    Figure("strength", "promotion_score", "score against the champion", ".3f",
           _of(_PROMOTION, "score"), better="up"),
    Figure("strength", "promotion_games", "games against the champion", ",.0f",
           _of(_PROMOTION, "games")),
    Figure("strength", "promotion_elo_ahead", "Elo ahead of the champion", "+.0f",
           _of(_PROMOTION, "elo_ahead"), better="up"),
    Figure("learning", "policy_loss", "policy loss", ".3f", _trained("policy_loss"),
           better="down", places=("learning", "run", "watch"), heading="policy\nloss", chart=_LOSS),
    Figure("learning", "value_loss", "value loss", ".3f", _trained("value_loss"), better="down",
           places=("learning", "run", "watch"), heading="value\nloss", chart=_VALUE_LOSS),
    Figure("learning", "total_loss", "loss", ".3f", _trained("total_loss"), better="down"),
    Figure("learning", "holdout_policy_loss_after", "held-out policy loss", ".3f",
           _trained("holdout_policy_loss_after"), better="down", chart=_LOSS),
    Figure("learning", "holdout_policy_accuracy_after", "held-out policy accuracy", ".1%",
           _trained("holdout_policy_accuracy_after"), better="up"),
    Figure("learning", "holdout_value_loss_before", "held-out value loss before training", ".3f",
           _trained("holdout_value_loss"), better="down"),
    Figure("learning", "holdout_value_loss_after", "held-out value loss", ".3f",
           _trained("holdout_value_loss_after"), better="down",
           places=("learning", "run", "watch"), heading="held\nout", chart=_VALUE_LOSS),
    Figure("learning", "holdout_value_target_loss_after", "held-out value loss, its targets",
           ".3f", _trained("holdout_value_target_loss_after"), better="down", chart=_VALUE_LOSS),
    Figure("learning", "holdout_brier_score_after", "held-out Brier score", ".3f",
           _trained("holdout_brier_score_after"), better="down", places=("run",)),
    Figure("learning", "holdout_decided_accuracy_after", "held-out winners foreseen", ".1%",
           _trained("holdout_decided_accuracy_after"), better="up", places=("run",)),
    Figure("learning", "policy_entropy", "policy entropy, nats", ".2f",
           _trained("policy_entropy"), places=("learning", "watch"), heading="entropy"),
    Figure("learning", "gradient_norm", "gradient norm", ".3f", _trained("gradient_norm")),
    Figure("learning", "learning_rate", "learning rate", ".2g", _trained("learning_rate")),
    Figure("learning", "steps", "steps", ",.0f", _trained("steps")),
    Figure("learning", "skipped_steps", "steps skipped", ",.0f", _trained("skipped_steps"),
           better="down"),
    Figure("learning", "samples", "samples", ",.0f", _trained("samples")),
    Figure("learning", "is_warm", "begun with a trained network", ".0f",
           lambda receipt: 1.0 if receipt.is_warm else None),
    Figure("learning", "window_positions", "positions in the window", ",.0f",
           lambda receipt: float(receipt.training.window_positions)),
    Figure("self_play", "games", "games", ",.0f", _played("games"),
           places=("status", "learning", "run"), heading="games"),
    Figure("self_play", "positions", "positions", ",.0f", _played("positions")),
    Figure("self_play", "plies_mean", "plies a game", ".0f", _played("plies_mean"),
           places=("status", "learning", "run", "watch"), heading="plies", chart="Plies a game"),
    Figure("self_play", "truncated_rate", "truncated games", ".0%", _played("truncated_rate"),
           places=("learning",), heading="cut", chart=_RESULTS),
    Figure("self_play", "entropy_ratio", "policy entropy, share of a uniform policy's", ".0%",
           _played("entropy_ratio"), chart="Policy entropy, share of a uniform policy's"),
    Figure("self_play", "mean_abs_value", "mean size of the value", ".3f",
           _played("mean_abs_value")),
    Figure("spikes", "spike_rate", "spike rate", ".1%", _trained("spike_rate"), better="down",
           places=("run",), chart="Spike rate"),
    Figure("spikes", "change_rate", "change rate of spikes", ".1%", _trained("change_rate"),
           better="down", places=("run",), chart="Change rate of spikes, same player's next move"),
    Figure("speed", "games_per_s", "games/s", ",.2f", _pace("games"), better="up",
           places=("run",)),
    Figure("speed", "positions_per_s", "positions/s", ",.0f", _pace("positions"), better="up",
           places=("learning", "watch"), heading="pos/s", chart="Positions of self-play a second"),
    Figure("speed", "samples_per_s", "samples/s in training", ",.0f", _trained("samples_per_s"),
           better="up", places=("run",)),
    Figure("speed", "network_share", "time in the network", ".0%", _played("network_share"),
           places=("watch",)),
    Figure("speed", "self_play_s", "seconds of self-play", ",.0f", _seconds("self_play"),
           places=("learning",), heading="play\ns"),
    Figure("speed", "training_s", "seconds of training", ",.0f", _seconds("training"),
           places=("learning",), heading="train\ns"),
    Figure("speed", "evaluation_s", "seconds of evaluation", ",.0f", _seconds("evaluation"),
           places=("learning",), heading="eval\ns"),
    Figure("speed", "gating_match_s", "seconds of the gating match", ",.0f",
           _seconds("gating_match")),
    Figure("speed", "iteration_s", "seconds", ",.0f", _seconds("iteration"),
           places=("status", "learning"), heading="s"),
    Figure("devices", "device_count", "devices", ",.0f", _of(_DEVICES, "count")),
    Figure("devices", "device_utilisation", "devices in use", ".0%", _of(_DEVICES, "utilisation"),
           better="up", places=("run", "watch")),
    Figure("devices", "device_memory_gib", "memory of each device, GiB", ".1f",
           _of(_DEVICES, "memory_gib"), places=("run", "watch")),
    Figure("devices", "joules", "joules, measured on this machine", ",.0f", attrgetter("joules"),
           better="down", places=("run",)),
    Figure("devices", "ranks", "ranks in training", ",.0f", _trained("ranks"), places=("run",)),
)

_CHESS: Final = (
    Figure("strength", "conversion_rate", "won endings won", ".0%",
           _of(attrgetter("conversion"), "rate"), better="up",
           places=("strength", "run", "watch"), heading="conversion", chart="Won endings won"),
    Figure("learning", "reference_policy_accuracy", "best moves", ".1%",
           _trained("reference_policy_accuracy"), better="up",
           places=("status", "learning", "run", "watch"), heading="best\nmoves",
           chart="Best moves, share of the reference positions"),
    Figure("learning", "reference_value_loss", "value loss, reference positions", ".3f",
           _trained("reference_value_loss"), better="down", chart=_VALUE_LOSS),
    Figure("self_play", "white_rate", "won by White", ".0%", _played("white_rate"),
           places=("learning",), heading="white", chart=_RESULTS),
    Figure("self_play", "draw_rate", "drawn or truncated", ".0%", _played("draw_rate"),
           places=("status", "learning", "run", "watch"), heading="draws", chart=_RESULTS),
    Figure("self_play", "black_rate", "won by Black", ".0%", _played("black_rate"),
           places=("learning",), heading="black", chart=_RESULTS),
    Figure("self_play", "ordinary_draw_rate", "drawn, games from the start", ".0%",
           _played("ordinary_draw_rate")),
    Figure("self_play", "practice_win_rate", "practice games won", ".0%",
           _played("practice_win_rate"), better="up"),
)
"""Figures of games of two players alone."""

_SOLO: Final = (
    Figure("strength", "points", "points", ",.0f", _of(_points_facts, "mean"),
           _of(_points_facts, "low"), _of(_points_facts, "high"), better="up",
           places=("strength", "run", "watch"), chart="Points"),
    Figure("strength", "points_median", "points, median", ",.0f", _of(_points_facts, "median"),
           better="up", places=("strength", "run"), heading="median"),
    Figure("strength", "points_best", "points, most", ",.0f", _of(_points_facts, "best"),
           better="up", places=("strength", "run"), heading="most"),
    Figure("strength", "promotion_points_ahead", "points ahead of the champion", "+,.0f",
           _of(_of(_PROMOTION, "points_ahead"), "mean"),
           better="up"),
    Figure("self_play", "self_play_points", "points in self-play", ",.0f",
           _played("points_mean"), better="up", places=("status", "learning", "run", "watch"),
           heading="points", chart="Points in self-play"),
    Figure("self_play", "self_play_points_median", "points in self-play, median", ",.0f",
           _played("points_median"), better="up"),
)
"""Figures of games of one player alone."""

_BY_NAME: Final = {figure.name: figure for figure in (*_CHESS, *_SOLO, *_FIGURES)}
"""Figures that do not depend on the campaign's opponents."""


def score_figure(opponent: str) -> Figure:
    """The score against ``opponent``."""
    def match(receipt: Receipt) -> MatchFacts | None:
        return next((match for match in receipt.matches if match.name == opponent), None)

    return Figure(
        "strength", f"score_{opponent.replace(':', '_')}", opponent, ".3f",
        _of(match, "score"), _of(match, "score_low"), _of(match, "score_high"),
        better="up", places=("strength", "run", "watch"), chart="Score by opponent",
    )


def _ending_figure(ending: str) -> Figure:
    def value(receipt: Receipt) -> float:
        return receipt.statistics.terminations.get(ending, 0) / receipt.statistics.games

    return Figure("self_play", _ENDED + ending, f"ended by {ending}", ".0%", value)


def _milestone_figure(milestone: str) -> Figure:
    def value(receipt: Receipt) -> float | None:
        points = _points_facts(receipt)
        return None if points is None else points.reached.get(milestone)

    return Figure("strength", f"reached_{milestone}", f"reached {milestone}", ".0%", value,
                  better="up", chart="Share of games that reached a tile")


def opponents_of(config: CampaignConfig) -> list[str]:
    """Names of the matches that an evaluated generation plays, in order."""
    return [*config.evaluation.opponents, EARLIER]


def figures_of(config: CampaignConfig) -> list[Figure]:
    """All figures of a campaign's iterations, by group; they depend on its settings alone."""
    spec = get_game(config.campaign.game).spec
    return _in_order([
        *(_CHESS if spec.num_players == 2 else _SOLO), *_FIGURES,
        *map(score_figure, opponents_of(config)),
        *map(_ending_figure, _endings(spec)),
        *map(_milestone_figure, map(str, spec.milestones)),
    ])


def _endings(spec: GameSpec) -> tuple[str, ...]:
    return (*spec.terminations[1:], PLY_LIMIT)


def _in_order(figures: Sequence[Figure]) -> list[Figure]:
    return sorted(figures, key=lambda figure: GROUPS.index(figure.group))


def shown_at(config: CampaignConfig, place: Place) -> list[Figure]:
    """The figures of a campaign that a table or list shows."""
    return [figure for figure in figures_of(config) if place in figure.places]


def layer_figures(receipt: Receipt) -> list[Figure]:
    """The spike rate of each layer of the network that the iteration trained."""
    return [
        Figure("spikes", name.removeprefix(_LAYER), f"spike rate, {name.removeprefix(_LAYER)}",
               ".1%", _trained(name))
        for name in receipt.training.metrics
        if name.startswith(_LAYER) and "/" not in name.removeprefix(_LAYER)  # that is a tick
    ]


def figure_row(receipt: Receipt, figures: Iterable[Figure] = tuple(_BY_NAME.values())) -> Row:
    """The figures of an iteration, with the ends of intervals, by name.

    By default those that do not depend on the campaign's opponents.
    """
    row: Row = {}
    for figure in figures:
        for name, value in figure.parts():
            number = value(receipt)
            row[name] = None if number is None or math.isnan(number) else float(number)
    return row


def figure_text(row: Row, name: str) -> str:
    """The text of a figure that does not depend on the opponents; empty if not measured."""
    return _BY_NAME[name].text(row)


def metrics_of(config: CampaignConfig, receipt: Receipt) -> dict[str, float]:
    """Everything of an iteration to plot, by :func:`.metric_name`; without what was not measured.

    Endings that did not occur are left out, and so are the ends of intervals, which MLflow cannot
    draw; the layers of the network are there too.
    """
    figures = [*figures_of(config), *layer_figures(receipt)]
    row = figure_row(receipt, figures)
    return {
        metric_name(figure.group, figure.name): value for figure in figures
        if (value := row[figure.name]) is not None and (value or not figure.name.startswith(_ENDED))
    }
