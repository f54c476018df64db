"""Receipts: what each finished iteration committed, in one small JSON file.

An iteration is finished when its receipt exists. Everything that MLflow shows can be computed from
the receipts again.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import Final

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.plans import Length, ProgressPlan, read_plan
from chess_snn.campaign.store.receipt_parts import (
    DeviceUse,
    PromotionFacts,
    ShardFacts,
    StageSeconds,
    TrainingFacts,
    interval_metrics,
    measured,
)
from chess_snn.campaign.store.typed_json import RecordFormat, numbered_files, read_numbered
from chess_snn.data import StoredFormat, write_text
from chess_snn.errors import ConfigError, CorruptDataError
from chess_snn.self_play import SelfPlayStatistics, combine
from chess_snn.types import Json

_RENAMED: Final = {"climb": "ladder_test", "capped": "truncated", "gate": "gating_match"}
"""Fields by their names before version 5, and in matches before version 6."""


def _with_present_names(body: Json) -> Json:
    """``body`` of version 4 with the field names of version 5."""
    renamed = _renamed(body)
    return renamed | {
        name: _renamed(renamed[name]) for name in ("promotion", "seconds")
        if isinstance(renamed.get(name), dict)
    }


def _with_truncated_games(body: Json) -> Json:
    """``body`` of version 5 with the names that version 6 has in matches and their reports."""
    reports = {
        name: report_of_present_version(body[name])
        for name in ("conversion", "ladder_test") if isinstance(body.get(name), dict)
    }
    matches = body.get("matches")
    if isinstance(matches, list):
        matches = [_renamed(match) if isinstance(match, dict) else match for match in matches]
    return body | reports | {"matches": matches}


def report_of_present_version(report: Json) -> Json:
    """A report on won positions or a ladder test of version 2 as version 3 would have it."""
    renamed = _renamed(report)
    if "bracket" not in renamed:
        return renamed
    simulations = str(renamed.get("player")).partition("@")[2]  # as in gen-000012@64
    budget = int(simulations) if simulations.isdecimal() else 0
    return {"simulations": budget, "scale": None} | renamed


def _renamed(part: Json) -> Json:
    """``part`` with the present names of its fields."""
    return {_RENAMED.get(name, name): value for name, value in part.items()}


FORMAT: Final = StoredFormat(
    "receipt", version=6,
    upgrades={3: dict, 4: _with_present_names, 5: _with_truncated_games}, has_digest=True,
)
"""Before version 4 the plan was one of version 2."""

MOST_UNDER_WAY: Final = 3
"""Iterations that may have a plan and no receipt yet."""
_MISFITS: Final = (ArithmeticError, AttributeError, ConfigError, KeyError, TypeError, ValueError)
"""What a body raises that is JSON and yet not a receipt."""


_MATCH_TEXTS: Final = ("name", "player_a", "player_b")
_MATCH_NUMBERS: Final = ("score", "score_low", "score_high", "wins", "draws", "losses", "truncated")


@dataclass(frozen=True)  # without slots, which leave no room for a cached property
class Receipt:
    """What one iteration committed; None stands for what was not measured."""

    iteration: int
    plan: ProgressPlan
    """Where in the campaign it stood."""
    shards: list[ShardFacts]
    training: TrainingFacts
    matches: list[Json]
    """Summaries of the candidate's matches; none where it is not evaluated."""
    conversion: Json | None
    """How the candidate played out won positions."""
    score: float | None
    """The candidate's mean score over the opponents, earlier generations left out, in [0, 1]."""
    champion: int
    """Generation of the champion after this iteration."""
    seconds: StageSeconds
    elapsed_s: float
    """Seconds that the campaign had run when it was finished, pauses left out."""
    rating: Json | None = None
    """The candidate's (:func:`chess_snn.campaign.strength.ratings.rating_of`)."""
    ladder_test: Json | None = None
    """The report of the candidate's ladder test."""
    promotion: PromotionFacts | None = None
    """The candidate's games against the champion."""
    is_warm: bool = False
    """Whether the campaign began with a pretrained network."""
    devices: DeviceUse | None = None
    """How busy the devices were."""

    @cached_property
    def statistics(self) -> SelfPlayStatistics:
        """Self-play statistics over all shards."""
        return combine([SelfPlayStatistics.from_json(shard.statistics) for shard in self.shards])

    @property
    def playing_s(self) -> float | None:
        """Seconds in which at least one shard was played, in whichever processes; None if unknown.

        Shards of earlier versions do not say when they were played. The stage's wall clock counts
        for them, unless one took longer: that one was found, played by an earlier process.
        """
        lasted = [(shard.began_s, float(shard.statistics["seconds"])) for shard in self.shards]
        if any(began_s is None for began_s, _ in lasted):
            wall_s = self.seconds.self_play
            return wall_s if wall_s >= max(seconds for _, seconds in lasted) else None
        total_s, end_s = 0.0, -inf
        for began_s, seconds in sorted((began_s or 0.0, seconds) for began_s, seconds in lasted):
            total_s += max(0.0, began_s + seconds - max(began_s, end_s))
            end_s = max(end_s, began_s + seconds)
        return total_s

    @property
    def promoted(self) -> bool:
        """Whether this iteration's candidate became the champion."""
        return self.champion == self.training.generation

    def share_of(self, length: Length) -> float:
        """Share of a campaign of ``length`` that is done when the iteration ends, in [0, 1].

        The plan has the progress that schedules follow, by the length that was known then.
        """
        return length.share(self.iteration + 1, self.elapsed_s)

    def metrics(self) -> dict[str, float]:
        """Everything to plot by iteration, grouped by the part before the slash."""
        statistics, playing_s = self.statistics, self.playing_s
        return measured({
            **{f"self_play/{name}": value for name, value in statistics.metrics().items()},
            "self_play/games_per_s": statistics.games / playing_s if playing_s else None,
            "self_play/positions_per_s": statistics.positions / playing_s if playing_s else None,
            "self_play/device_seconds": statistics.seconds,
            **{f"train/{name}": value for name, value in self.training.metrics.items()},
            "train/window_positions": float(self.training.window_positions),
            **{f"evaluation/{figure}_{m['name']}".replace(":", "_"): float(m[figure])
               for m in self.matches for figure in _MATCH_NUMBERS},
            **_points_metrics(self.matches),
            "evaluation/score": self.score,
            **_rating_metrics("evaluation/elo_own_games", self.rating),
            **_rating_metrics("evaluation/ladder_elo", self.ladder_test),
            **({} if self.ladder_test is None else {
                "evaluation/ladder_test_games": float(self.ladder_test["num_games"]),
                "evaluation/ladder_search_budget": float(self.ladder_test["simulations"]),
            }),
            "evaluation/conversion_rate":
                None if self.conversion is None else float(self.conversion["rate"]),
            "evaluation/champion": float(self.champion),
            **({} if self.promotion is None else self.promotion.metrics()),
            **({} if self.devices is None else self.devices.metrics()),
            **{f"seconds/{name}": value for name, value in asdict(self.seconds).items()},
            "campaign/elapsed_s": self.elapsed_s,
            "campaign/is_warm": 1.0 if self.is_warm else None,
        })


RECEIPTS: Final = RecordFormat(Receipt, FORMAT)


def _points_metrics(matches: Sequence[Json]) -> dict[str, float]:
    """In a game of one player: the candidate's points, and how far ahead of each opponent it is.

    Its games are the same in all matches, which have the same seeds.
    """
    found = {match["name"].replace(":", "_"): match["points"] for match in matches
             if "points" in match}
    if not found:
        return {}
    own = next(iter(found.values()))["a"]
    metrics = interval_metrics("evaluation/points", own, mean="_mean")
    metrics |= {f"evaluation/points_{name}": own[name] for name in ("median", "best")}
    metrics |= {f"evaluation/reached_{name}": share for name, share in own["reached"].items()}
    for name, points in found.items():
        metrics |= interval_metrics(f"evaluation/points_ahead_{name}", points["ahead"])
    return metrics


def _rating_metrics(name: str, rating: Json | None) -> dict[str, float]:
    """Elo and its interval, under ``name``; ends that are not finite are left out."""
    if rating is None:
        return {}
    return measured({f"{name}{end}": rating[f"elo{end}"] for end in ("", "_low", "_high")})


def is_summary(match: object) -> bool:
    """Whether ``match`` says of a match who played and how it ended."""
    return (
        isinstance(match, dict)
        and all(isinstance(match.get(name), str) for name in _MATCH_TEXTS)
        and all(_is_number(match.get(name)) for name in _MATCH_NUMBERS)
    )


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def write_receipt(folder: CampaignFolder, receipt: Receipt) -> None:
    """Finish the iteration."""
    write_text(folder.receipt(receipt.iteration), RECEIPTS.text(receipt))


def read_receipt(folder: CampaignFolder, iteration: int) -> Receipt:
    """The receipt of a finished iteration.

    Raises:
        UnknownVersionError: it is of a version that is not read.
        CorruptDataError: it is missing or damaged.
    """
    path = folder.receipt(iteration)
    hint = (
        "restore it from a copy, or have its iteration finished again: "
        f"chess-snn verify {folder.path} --repair"
    )
    receipt = RECEIPTS.read(path, hint)
    try:
        metrics = receipt.metrics()  # reads every part, so a missing one is found here
    except _MISFITS as error:
        raise CorruptDataError(f"{path} is damaged: {error!r}; {hint}") from error
    if receipt.iteration != iteration:
        raise CorruptDataError(f"{path} is the receipt of iteration {receipt.iteration}; {hint}")
    if not all(map(_is_number, metrics.values())) or not all(map(is_summary, receipt.matches)):
        raise CorruptDataError(f"{path} is damaged: a figure is missing; {hint}")
    return receipt


def read_receipts(folder: CampaignFolder) -> list[Receipt]:
    """The receipts of all finished iterations, in order; they have no gaps."""
    return read_numbered(folder.receipt, partial(read_receipt, folder))


def recorded_seconds(folder: CampaignFolder) -> float:
    """Seconds that the campaign is known to have run: by its newest plan and its newest receipt."""
    num_begun = len(numbered_files(folder.plan))
    num_finished = num_finished_iterations(folder)
    begun_s = read_plan(folder, num_begun - 1).elapsed_s if num_begun else 0.0
    finished_s = read_receipt(folder, num_finished - 1).elapsed_s if num_finished else 0.0
    return max(begun_s, finished_s)


def num_finished_iterations(folder: CampaignFolder) -> int:
    """How many receipts :func:`read_receipts` would read; none is read."""
    return len(numbered_files(folder.receipt))


def lost_receipt(folder: CampaignFolder) -> Path | None:
    """The first receipt that is missing although there are later ones, or far later plans.

    :func:`read_receipts` ends before it. None if no receipt is known to be missing.
    """
    finished, begun = num_finished_iterations(folder), len(numbered_files(folder.plan))
    lost = folder.receipt(finished)
    is_older = any(path.name > lost.name for path in lost.parent.glob("iter-*.json"))
    return lost if is_older or finished + MOST_UNDER_WAY < begun else None
