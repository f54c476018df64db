"""What a match between two players came to.

Dimensions: n games, in pairs of one opening with the colours swapped.
"""

from dataclasses import asdict, dataclass, field

import numpy as np

from chess_snn.evaluation.intervals import wilson_interval
from chess_snn.evaluation.players import ProgramFacts
from chess_snn.games.base import ONGOING, GameSpec, termination_counts
from chess_snn.types import BoolArray, Float32Array, Int32Array, Json, UInt8Array


@dataclass(frozen=True, slots=True, eq=False)
class MatchResult:
    """Every game of a match of a against b; counts and scores are a's."""

    spec: GameSpec
    """The game played; its ``terminations`` name the termination codes."""
    player_a: str
    player_b: str
    opening_index: Int32Array
    """int32[n]: row of the openings the game started from; each occurs in two games."""
    a_is_white: BoolArray
    """bool[n]: whether a was the first player; once True and once False an opening."""
    scores_a: Float32Array
    """float32[n]: 1 where a won, 0.5 drawn or capped, 0 where b won, NaN where voided."""
    terminations: UInt8Array
    """uint8[n]: why the game ended; ``ONGOING`` (0) where it was not by the rules: the ply cap cut
    it (score 0.5), a player forfeited it (0 or 1), or it is void (NaN)."""
    plies: Int32Array
    """int32[n]: half-moves played from the opening on."""
    programs: dict[str, ProgramFacts] = field(default_factory=dict)
    """By name, the players that are other programs."""

    @property
    def num_games(self) -> int:
        """Number of games, n, voided ones among them."""
        return len(self.scores_a)

    @property
    def voided(self) -> int:
        """Games that a player could not go on with; no score holds them."""
        return int(np.count_nonzero(np.isnan(self.scores_a)))

    @property
    def num_scored(self) -> int:
        """Games that count."""
        return self.num_games - self.voided

    @property
    def num_pairs(self) -> int:
        """Pairs of games that the score is worth; at least 1."""
        return max(1, self.num_scored // 2)

    @property
    def wins(self) -> int:
        """Games that a won."""
        return int(np.count_nonzero(self.scores_a == 1.0))

    @property
    def losses(self) -> int:
        """Games that b won."""
        return int(np.count_nonzero(self.scores_a == 0.0))

    @property
    def capped(self) -> int:
        """Games cut by the ply cap; they score as draws and are not counted as such."""
        return self._unfinished(0.5)

    @property
    def forfeits_a(self) -> int:
        """Games among the losses in which a made no legal move."""
        return self._unfinished(0.0)

    @property
    def forfeits_b(self) -> int:
        """Games among the wins in which b made no legal move."""
        return self._unfinished(1.0)

    @property
    def draws(self) -> int:
        """Games drawn by the rules."""
        return self.num_scored - self.wins - self.losses - self.capped

    @property
    def score(self) -> float:
        """Mean score of a, in [0, 1], over the games that count."""
        return float(np.nanmean(self.scores_a, dtype=np.float64))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Confidence interval (low, high) of the score; a pair of games is one trial.

        The two games of an opening are not independent, pairs are: see
        :func:`chess_snn.evaluation.intervals.wilson_interval`.
        """
        return wilson_interval(self.score, self.num_pairs, confidence)

    @property
    def terminations_by_name(self) -> dict[str, int]:
        """Games by way of ending; ways that did not occur are absent.

        Capped games are ``"ongoing"``, others that the rules did not end ``"forfeit"``, ``"void"``.
        """
        unfinished = {
            self.spec.terminations[ONGOING]: self.capped,
            "forfeit": self.forfeits_a + self.forfeits_b,
            "void": self.voided,
        }
        by_rule = termination_counts(self.spec, self.terminations[self.terminations != ONGOING])
        return {name: count for name, count in unfinished.items() if count} | by_rule

    def summary(self) -> Json:
        """Game, names, counts, score with its 95 % interval, endings, mean plies and programs."""
        low, high = self.interval()
        return {
            "game": self.spec.name,
            "player_a": self.player_a,
            "player_b": self.player_b,
            "num_games": self.num_games,
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "capped": self.capped,
            "forfeits_a": self.forfeits_a,
            "forfeits_b": self.forfeits_b,
            "voided": self.voided,
            "score": self.score,
            "score_low": low,
            "score_high": high,
            "mean_plies": float(np.mean(self.plies)),
            "terminations": self.terminations_by_name,
            "programs": {name: asdict(facts) for name, facts in self.programs.items()},
        }

    def to_json(self) -> Json:
        """:meth:`summary` and, under ``"per_game"``, the columns of every game.

        The score of a voided game is null.
        """
        columns = {
            "opening_index": self.opening_index.tolist(),
            "a_is_white": self.a_is_white.tolist(),
            "score_a": [None if np.isnan(score) else score for score in self.scores_a.tolist()],
            "termination": [self.spec.terminations[code] for code in self.terminations],
            "plies": self.plies.tolist(),
        }
        return self.summary() | {"per_game": columns}

    def _unfinished(self, score_a: float) -> int:
        """Games of that score that did not end by the rules."""
        return int(np.count_nonzero((self.terminations == ONGOING) & (self.scores_a == score_a)))
