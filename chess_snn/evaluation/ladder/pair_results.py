"""What a pairing of the ladder came to: its openings, by the outcomes of their two games.

Dimensions: A's outcome with white and with black, each in the order (win, draw, loss).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.ratings import RatedGame
from chess_snn.types import Int64Array, Json

_OUTCOMES: Final = (1, 0, -1)
"""As numbers, of (win, draw, loss)."""


@dataclass(frozen=True, slots=True, eq=False)
class PairResults:
    """All that ratings need of a pairing: which outcomes its pairs of games had, and how often."""

    player_a: str
    player_b: str
    counts: Int64Array
    """int64[3, 3]: openings by a's outcome with white and with black, each (win, draw, loss). An
    opening of which a game is void is left out."""
    capped: int
    """Games cut by the ply cap; they count as drawn."""
    plies: int
    """Half-moves of all games together."""

    @classmethod
    def of_match(cls, result: MatchResult) -> Self:
        """The results of a match."""
        by_pair = np.full((2, len(result.opening_keys)), np.nan)
        by_pair[(~result.a_is_white).astype(np.int64), result.opening_index] = result.scores_a
        whole = by_pair[:, np.isfinite(by_pair).all(axis=0)]
        places = np.rint(2.0 * (1.0 - whole)).astype(np.int64)
        counts = np.zeros((len(_OUTCOMES), len(_OUTCOMES)), np.int64)
        np.add.at(counts, (places[0], places[1]), 1)
        return cls(
            result.player_a, result.player_b, counts, result.capped, int(result.plies.sum())
        )

    @classmethod
    def from_json(cls, body: Json) -> Self:
        """What :meth:`to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: it is damaged.
        """
        counts = np.array(body["pairs"], np.int64)
        if counts.shape != (len(_OUTCOMES), len(_OUTCOMES)) or (counts < 0).any():
            raise ValueError(f"pairs are {body['pairs']!r}")
        return cls(
            str(body["player_a"]), str(body["player_b"]), counts, int(body["capped"]),
            int(body["plies"]),
        )

    @property
    def num_pairs(self) -> int:
        """Openings that count."""
        return int(self.counts.sum())

    @property
    def pentanomial(self) -> Int64Array:
        """int64[5]: pairs by the points of a in their two games: 0, 1/2, 1, 3/2, 2."""
        with_white, with_black = np.indices(self.counts.shape)
        points = 2 * (len(_OUTCOMES) - 1) - with_white - with_black
        return np.bincount(points.ravel(), weights=self.counts.ravel()).astype(np.int64)

    @property
    def score(self) -> float:
        """Mean score of a, in [0, 1]."""
        counts = self.pentanomial
        return float((counts * np.arange(len(counts))).sum() / (4.0 * counts.sum()))

    def games(self) -> Iterator[RatedGame]:
        """The games; every opening has a name that occurs in no other pairing."""
        opening = 0
        for (white, black), count in np.ndenumerate(self.counts):
            for _ in range(count):
                name = f"ladder:{self.player_a}:{self.player_b}:{opening}"
                yield RatedGame(self.player_a, self.player_b, _OUTCOMES[white], name)
                yield RatedGame(self.player_b, self.player_a, -_OUTCOMES[black], name)
                opening += 1

    def to_json(self) -> Json:
        """Everything, and for people the points of pairs and games by colour."""
        white, black = self.counts.sum(axis=1), self.counts.sum(axis=0)
        return {
            "player_a": self.player_a, "player_b": self.player_b,
            "score_a": round(self.score, 4),
            "pairs": self.counts.tolist(),
            "pentanomial": self.pentanomial.tolist(),
            "wdl_a_white": white.tolist(), "wdl_a_black": black.tolist(),
            "capped": self.capped, "plies": self.plies,
        }
