"""Parts of a receipt: what shards, training, evaluation, gating match, stages and devices gave."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from chess_snn.campaign.store.match_facts import (
    ConversionFacts,
    LadderTestFacts,
    MatchFacts,
    MeanInterval,
)
from chess_snn.evaluation.scores import pair_interval
from chess_snn.self_play import SelfPlayStatistics

Verdict = Literal["accept", "reject", "undecided"]
"""Verdict of the games against the champion on a candidate."""
VERDICT_NUMBERS: Final[dict[Verdict, float]] = {"reject": -1.0, "undecided": 0.0, "accept": 1.0}
"""Verdicts as a metric."""
VERDICT_WORDS: Final[dict[Verdict, str]] = {
    "reject": "rejected", "undecided": "undecided", "accept": "accepted",
}
"""Verdicts for people."""


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """One committed shard."""

    name: str
    """``iter-000012/shard-0003``."""
    bytes: int
    statistics: SelfPlayStatistics
    began_s: float
    """When its worker began to play, in seconds since 1970."""


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

    matches: list[MatchFacts]
    conversion: ConversionFacts | None
    """None in a game of one player."""
    ladder_test: LadderTestFacts | None = None


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
    """Simulations of both, at each of their moves."""
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
    """Games of either network in that fit; None if no fit has both."""
    points_ahead: MeanInterval | None = None
    """Points by which the candidate is ahead on a seed; None in a game of two players."""

    def __str__(self) -> str:
        """The verdict in one line: what decided, and then the match alone."""
        verdict = VERDICT_WORDS[self.verdict]
        if self.elo_ahead is None:
            decided = f"{verdict} by"
        else:
            word = "better" if self.elo_ahead >= 0.0 else "worse"
            ahead = f"{abs(self.elo_ahead):.0f} Elo {word}"
            decided = f"{verdict}: {ahead} by {self.games_rated:,} games"
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
            f", ahead by {self.points_ahead} points"
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
    """Time from the beginning of the iteration to its receipt."""
    gating_match: float = 0.0
    """Seconds of games against the champion; 0 where there were none."""


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


def measured(figures: Mapping[str, float | None]) -> dict[str, float]:
    """Those that were measured."""
    return {name: figure for name, figure in figures.items() if figure is not None}
