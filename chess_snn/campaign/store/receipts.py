"""Receipts: what each finished iteration committed, in one small JSON file.

An iteration is finished when its receipt exists. Everything that MLflow shows can be computed from
the receipts again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import Final, Literal

import numpy as np

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.plans import Length, ProgressPlan, read_plan
from chess_snn.campaign.store.typed_json import RecordFormat, numbered_files, read_numbered
from chess_snn.data import StoredFormat, write_text
from chess_snn.errors import ConfigError, CorruptDataError
from chess_snn.evaluation.scores import pair_interval
from chess_snn.evaluation.solo import interval_text
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


Verdict = Literal["accept", "reject", "undecided"]
"""What the games against the champion say of a candidate."""
VERDICT_NUMBERS: Final[dict[Verdict, float]] = {"reject": -1.0, "undecided": 0.0, "accept": 1.0}
"""Verdicts as a metric."""
VERDICT_WORDS: Final[dict[Verdict, str]] = {
    "reject": "rejected", "undecided": "undecided", "accept": "accepted",
}
"""Verdicts for people."""

_MATCH_TEXTS: Final = ("name", "player_a", "player_b")
_MATCH_NUMBERS: Final = ("score", "score_low", "score_high", "wins", "draws", "losses", "truncated")


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """One committed shard."""

    name: str
    """``iter-000012/shard-0003``."""
    bytes: int
    statistics: Json
    """A :class:`SelfPlayStatistics` as JSON."""
    began_s: float | None = None
    """When its worker began to play, in seconds since 1970; None in shards of earlier versions."""


@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """One committed generation."""

    generation: int
    weights_digest: str
    window_shards: list[str]
    """Names of the shards in the replay window, oldest first."""
    window_positions: int
    metrics: dict[str, float]
    """Losses, gradient norm, entropy, learning rate, speed; by name."""


@dataclass(frozen=True, slots=True)
class EvaluationFacts:
    """The results of evaluating one generation."""

    matches: list[Json]
    """Summaries with the ``name`` of each match."""
    conversion: Json | None
    """How it played out won positions; None in a game of one player."""
    ladder_test: Json | None = None
    """The report of its ladder test; None without one."""


@dataclass(frozen=True, slots=True)
class PromotionFacts:
    """The result of a candidate's games against the champion.

    They are kept in ``matches/gen-000012/champion-000008.json``. Counts and scores are the
    candidate's.
    """

    candidate: int
    """Generation."""
    champion: int
    """Generation that it played against."""
    verdict: Verdict
    """``"undecided"`` occurs in receipts written while the test alone decided: the champion
    stayed."""
    llr: float
    """Log-likelihood ratio of `elo1` to `elo0`, nats."""
    lower: float
    """At or below it the candidate is rejected."""
    upper: float
    """At or above it the candidate is accepted."""
    elo0: float
    elo1: float
    simulations: int
    """Of both, at each of their moves."""
    games: int
    wins: int
    draws: int
    losses: int
    truncated: int
    """Games that reached the ply limit; they count half."""
    pairs: list[int]
    """Openings by the score in their two games: 0, ½, 1, 1½ and 2 points."""
    score: float
    """Mean, in [0, 1]."""
    elo_ahead: float | None = None
    """Elo points by which all games so far put the candidate above the champion; None if no fit has
    both."""
    elo_ahead_low: float | None = None
    elo_ahead_high: float | None = None
    """95 % interval; None where that end is not finite."""
    games_rated: int | None = None
    """Games of either network in that fit; None in receipts of earlier versions."""
    points_ahead: Json | None = None
    """In a game of one player: by how many points the candidate is ahead on a seed, as ``mean``,
    ``low`` and ``high`` of the 95 % interval."""

    def metrics(self) -> dict[str, float]:
        """What is plotted."""
        return measured({
            "promotion/llr": self.llr,
            "promotion/games": float(self.games),
            "promotion/score": self.score,
            "promotion/verdict": VERDICT_NUMBERS[self.verdict],
            "promotion/elo_ahead": self.elo_ahead,
            **_interval_metrics("promotion/points_ahead", self.points_ahead),
        })

    def __str__(self) -> str:
        """The verdict in one line: what decided, and then the match alone."""
        verdict = VERDICT_WORDS[self.verdict]
        if self.elo_ahead is None:
            decided = f"{verdict} by"
        else:
            known = self.games_rated is not None
            games = f"{self.games_rated:,} games" if known else "all games so far"
            word = "better" if self.elo_ahead >= 0.0 else "worse"
            decided = f"{verdict}: {abs(self.elo_ahead):.0f} Elo {word} by {games}"
            if self.verdict == "reject" and self.elo_ahead >= 0.0:
                decided += ", which does not outweigh the lost match"
            decided += ";"
        return f"{self.players_text}: {decided} this match alone {self.match_text}"

    @property
    def players_text(self) -> str:
        """``generation 4 against champion 2``."""
        return f"generation {self.candidate} against champion {self.champion}"

    @property
    def match_text(self) -> str:
        """The score with its 95 % interval, the games, and the state of the sequential test."""
        low, high = pair_interval(np.array(self.pairs))
        points = "" if self.points_ahead is None else (
            f", ahead by {interval_text(self.points_ahead)} points"
        )
        return (
            f"{self.score:.3f} ({low:.3f} to {high:.3f}) after {self.games} games, "
            f"{self.wins}-{self.draws}-{self.losses} and {self.truncated} truncated{points}, "
            f"log-likelihood ratio {self.llr:+.2f} of {self.lower:+.2f} to {self.upper:+.2f}"
        )


@dataclass(frozen=True, slots=True)
class StageSeconds:
    """Wall clock of an iteration's stages, in the process that finished it."""

    self_play: float
    training: float
    evaluation: float
    """0 where the generation is not evaluated."""
    evaluation_hidden: float
    """The part of it during which the next iteration was under way already."""
    iteration: float
    """From the beginning of the iteration to its receipt."""
    gating_match: float = 0.0
    """Of games against the champion; 0 where there were none."""


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """Means over an iteration: of the workers' GPUs or, where they have none, of their machines."""

    count: float
    """GPUs, or machines, that could be asked."""
    utilisation: float
    """Share of the time in which a GPU computes, or of a machine's cores that workers keep busy; in
    [0, 1]."""
    memory_gib: float
    """Taken of a GPU's memory, or by the workers of a machine."""

    def metrics(self) -> dict[str, float]:
        """What is plotted."""
        return {f"device/{name}": value for name, value in asdict(self).items()}


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


def measured(figures: Mapping[str, float | None]) -> dict[str, float]:
    """Those that were measured."""
    return {name: figure for name, figure in figures.items() if figure is not None}


def _points_metrics(matches: Sequence[Json]) -> dict[str, float]:
    """In a game of one player: the candidate's points, and how far ahead of each opponent it is.

    Its games are the same in all matches, which have the same seeds.
    """
    found = {match["name"].replace(":", "_"): match["points"] for match in matches
             if "points" in match}
    if not found:
        return {}
    own = next(iter(found.values()))["a"]
    metrics = _interval_metrics("evaluation/points", own, mean="_mean")
    metrics |= {f"evaluation/points_{name}": own[name] for name in ("median", "best")}
    metrics |= {f"evaluation/reached_{name}": share for name, share in own["reached"].items()}
    for name, points in found.items():
        metrics |= _interval_metrics(f"evaluation/points_ahead_{name}", points["ahead"])
    return metrics


def _interval_metrics(name: str, figures: Json | None, mean: str = "") -> dict[str, float]:
    """``mean``, ``low`` and ``high`` of ``figures``, those that there are, under ``name``."""
    if figures is None:
        return {}
    endings = {"mean": mean, "low": "_low", "high": "_high"}
    return measured({name + endings[figure]: figures[figure] for figure in endings})


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
