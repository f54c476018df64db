"""Finished iterations as rows of one table, under column names that scripts may rely on.

Which columns there are depends on the campaign's game and opponents alone: not on how far it is,
nor on whether a generation was evaluated. A figure that was not measured is None.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.plans import Length, campaign_length
from chess_snn.campaign.store.receipts import Receipt
from chess_snn.campaign.strength.match_schedule import EARLIER
from chess_snn.games import GameSpec, get_game
from chess_snn.self_play import PLY_LIMIT, RESIGNED
from chess_snn.types import Json

_ENDED: Final = "ended_"
_WHERE: Final = ("iteration", "generation", "champion", "progress", "elapsed_s")

_METRICS: Final = {
    "games": "self_play/games",
    "positions": "self_play/positions",
    "white_rate": "self_play/white_rate",
    "draw_rate": "self_play/draw_rate",
    "black_rate": "self_play/black_rate",
    "truncated_rate": "self_play/truncated_rate",
    "plies_mean": "self_play/plies_mean",
    "games_per_s": "self_play/games_per_s",
    "positions_per_s": "self_play/positions_per_s",
    "network_share": "self_play/network_share",
    "entropy_ratio": "self_play/entropy_ratio",
    "policy_loss": "train/policy_loss",
    "value_loss": "train/value_loss",
    "holdout_value_loss_before": "train/holdout_value_loss",
    "holdout_value_loss_after": "train/holdout_value_loss_after",
    "policy_entropy": "train/policy_entropy",
    "learning_rate": "train/learning_rate",
    "window_positions": "train/window_positions",
    "score": "evaluation/score",
    "elo": "evaluation/elo_own_games",
    "elo_low": "evaluation/elo_own_games_low",
    "elo_high": "evaluation/elo_own_games_high",
    "conversion_rate": "evaluation/conversion_rate",
    "promotion_verdict": "promotion/verdict",
    "promotion_score": "promotion/score",
    "promotion_llr": "promotion/llr",
    "promotion_games": "promotion/games",
    "self_play_s": "seconds/self_play",
    "training_s": "seconds/training",
    "evaluation_s": "seconds/evaluation",
    "evaluation_hidden_s": "seconds/evaluation_hidden",
    "gating_match_s": "seconds/gating_match",
    "iteration_s": "seconds/iteration",
    "device_utilisation": "device/utilisation",
    "device_memory_gib": "device/memory_gib",
    "plies_min": "self_play/plies_min",
    "plies_max": "self_play/plies_max",
}
_LATER_METRICS: Final = {
    "total_loss": "train/total_loss",
    "holdout_policy_loss_after": "train/holdout_policy_loss_after",
    "holdout_policy_accuracy_after": "train/holdout_policy_accuracy_after",
    "holdout_value_target_loss_after": "train/holdout_value_target_loss_after",
    "holdout_brier_score_after": "train/holdout_brier_score_after",
    "holdout_decided_accuracy_after": "train/holdout_decided_accuracy_after",
    "reference_policy_accuracy": "train/reference_policy_accuracy",
    "reference_value_loss": "train/reference_value_loss",
    "spike_rate": "train/spike_rate",
    "ladder_elo": "evaluation/ladder_elo",
    "ladder_elo_low": "evaluation/ladder_elo_low",
    "ladder_elo_high": "evaluation/ladder_elo_high",
    "promotion_elo_ahead": "promotion/elo_ahead",
}
"""Columns by the metric of :meth:`Receipt.metrics` that they show; shares of endings stand between
the two."""
_POINTS: Final = {
    "self_play_points": "self_play/points_mean",
    "self_play_points_median": "self_play/points_median",
    "points": "evaluation/points_mean",
    "points_low": "evaluation/points_low",
    "points_high": "evaluation/points_high",
    "points_median": "evaluation/points_median",
    "points_best": "evaluation/points_best",
    "promotion_points_ahead": "promotion/points_ahead",
}
"""Columns that a game of one player has as well."""

CURVES: Final = (
    ("policy loss", "policy_loss", ".3f"),
    ("value loss", "value_loss", ".3f"),
    ("held-out value loss", "holdout_value_loss_after", ".3f"),
    ("best moves", "reference_policy_accuracy", ".1%"),
    ("policy entropy", "policy_entropy", ".2f"),
    ("draw rate", "draw_rate", ".0%"),
    ("points in self-play", "self_play_points", ",.0f"),
    ("plies a game", "plies_mean", ".0f"),
    ("positions/s", "positions_per_s", ",.0f"),
    ("time in the network", "network_share", ".0%"),
    ("devices in use", "device_utilisation", ".0%"),
    ("device memory, GiB", "device_memory_gib", ".1f"),
    ("won positions won", "conversion_rate", ".0%"),
    ("points", "points", ",.0f"),
    ("mean score", "score", ".3f"),
)
"""What watchers draw over the iterations: label, column of a row, format of the newest."""

_MATCH_FIELDS: Final = {"": "score", "_low": "score_low", "_high": "score_high"}
"""Endings of the three columns of an opponent: the score and its 95 % interval."""


def opponents_of(config: CampaignConfig) -> list[str]:
    """Names of the matches that an evaluated generation plays, in order."""
    return [*config.evaluation.opponents, EARLIER]


def score_column(opponent: str) -> str:
    """The column of the score against ``opponent``; with ``_low`` and ``_high``, its interval."""
    return f"score_{opponent.replace(':', '_')}"


def result_columns(config: CampaignConfig) -> list[str]:
    """The names of all columns, in order."""
    scores = [
        score_column(opponent) + ending
        for opponent in opponents_of(config) for ending in _MATCH_FIELDS
    ]
    return [*_WHERE, *_metrics_of(get_game(config.campaign.game).spec), *scores]


def _metrics_of(spec: GameSpec) -> dict[str, str]:
    """All columns that show a metric."""
    resigned = (RESIGNED,) if spec.num_players == 2 else ()
    endings = (*spec.terminations[1:], *resigned, PLY_LIMIT)
    reached = {f"reached_{m}": f"evaluation/reached_{m}" for m in spec.milestones}
    return {
        **_METRICS,
        **{_ENDED + ending: f"self_play/{_ENDED}{ending}" for ending in endings},
        **_LATER_METRICS,
        **(_POINTS | reached if spec.num_players == 1 else {}),
    }


def result_rows(folder: CampaignFolder, receipts: Sequence[Receipt]) -> list[Json]:
    """A row each, with the columns of :func:`result_columns`.

    ``promotion_verdict`` is 1 where the candidate was accepted as champion, -1 where it was
    rejected, 0 where its games left that open. Rates, shares, scores and progress are in [0, 1],
    losses and ``policy_entropy`` in nats, ``*_s`` in seconds; ``progress`` and ``elapsed_s`` are
    those at the iteration's end, and progress is a share of the campaign's present length.
    """
    config, length = folder.config, campaign_length(folder)
    columns, opponents = _metrics_of(get_game(config.campaign.game).spec), opponents_of(config)
    return [result_row(receipt, length, columns, opponents) for receipt in receipts]


def result_row(
    receipt: Receipt,
    length: Length,
    columns: Mapping[str, str] = MappingProxyType(_METRICS | _LATER_METRICS | _POINTS),
    opponents: Sequence[str] = (),
) -> Json:
    """One of the rows, with these columns and those of these opponents.

    ``length`` is the campaign's. ``columns`` has the metrics that they show; by default there are
    none of endings.
    """
    metrics = receipt.metrics()
    row: Json = {
        "iteration": receipt.iteration,
        "generation": receipt.training.generation,
        "champion": receipt.champion,
        "progress": receipt.share_of(length),
        "elapsed_s": receipt.elapsed_s,
        # Metrics leave out endings that did not occur.
        **{column: metrics.get(metric, 0.0 if column.startswith(_ENDED) else None)
           for column, metric in columns.items()},
    }
    matches = {match["name"]: match for match in receipt.matches}
    for opponent in opponents:
        match = matches.get(opponent, {})
        for ending, field in _MATCH_FIELDS.items():
            row[score_column(opponent) + ending] = match.get(field)
    return row


def results_csv(config: CampaignConfig, rows: Sequence[Json]) -> str:
    """Rows of :func:`result_rows` as CSV with a header; what was not measured is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, result_columns(config), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def results_json(folder: CampaignFolder, rows: Sequence[Json], finals: Sequence[Json]) -> str:
    """Rows of :func:`result_rows` and the matches at the end as JSON; null where not measured."""
    body = {
        "campaign": folder.name,
        "id": folder.campaign_id,
        "iterations": rows,
        "final_matches": finals,
    }
    return json.dumps(body, indent=2, allow_nan=False) + "\n"
