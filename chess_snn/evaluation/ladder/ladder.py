"""The ladder: players whose ratings are known from many games between them, and their results.

Ratings are kept for people to read. To rate a new player, its games are fitted together with the
ladder's (:meth:`Ladder.games`), so that what is not known of the ladder widens its interval.
"""

import functools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final, Self

import numpy as np

from chess_snn.data import json_digest
from chess_snn.errors import CorruptDataError, RatingError
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.ratings.crosstable import Crosstable, RatedGame
from chess_snn.evaluation.ratings.fit import fit_ratings
from chess_snn.types import Int64Array, Json

_OUTCOMES: Final = (1, 0, -1)
"""Numbers of (win, draw, loss)."""
SCHEMA: Final = 2
LADDER_FILE: Final = "ladder.json"
_DATA: Final = "data"
_DIGEST_LENGTH: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class PairResults:
    """All that ratings need of a pairing: which outcomes its pairs of games had, and how often."""

    player_a: str
    player_b: str
    counts: Int64Array
    """int64[3, 3]: openings by a's outcome with white and with black, each (win, draw, loss). An
    opening of which a game is void is left out."""
    truncated: int
    """Games that reached the ply limit; they count as drawn."""
    plies: int
    """Half-moves of all games together."""

    @classmethod
    def of_match(cls, result: MatchResult) -> Self:
        """The results of a match."""
        by_pair = result.scores_a.reshape(-1, 2)
        whole = by_pair[np.isfinite(by_pair).all(axis=1)]
        cells = np.rint(2.0 * (1.0 - whole)).astype(np.int64)
        counts = np.zeros((len(_OUTCOMES), len(_OUTCOMES)), np.int64)
        np.add.at(counts, (cells[:, 0], cells[:, 1]), 1)
        return cls(
            result.player_a, result.player_b, counts, result.truncated, int(result.plies.sum())
        )

    @classmethod
    def from_json(cls, body: Json) -> Self:
        """Read what :meth:`to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: it is damaged.
        """
        counts = np.array(body["pairs"], np.int64)
        if counts.shape != (len(_OUTCOMES), len(_OUTCOMES)) or (counts < 0).any():
            raise ValueError(f"pairs are {body['pairs']!r}")
        return cls(
            str(body["player_a"]), str(body["player_b"]), counts, int(body["truncated"]),
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
            "truncated": self.truncated, "plies": self.plies,
        }


@dataclass(frozen=True, slots=True)
class Rung:
    """A player of the ladder."""

    player: str
    elo: float
    """Above the random player."""
    elo_low: float
    elo_high: float
    """95 % interval, 0 wide at the random player; infinite where too few games bound it."""
    num_games: int


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """Results of a round-robin, and what they say."""

    rungs: tuple[Rung, ...]
    """The weakest first."""
    pairings: tuple[PairResults, ...]
    programs: dict[str, str]
    """Identities, by player, of the programs behind players call themselves: ``Stockfish 15.1``."""
    max_plies: int
    """Games were truncated after this many half-moves."""
    origin: Json
    """Origin of the ladder: ``date``, ``command``, ``seed``, ``version`` of chess-snn."""
    ratings: Json
    """Fitted ratings, see :meth:`chess_snn.evaluation.ratings.result.Ratings.to_json`."""

    @classmethod
    def of_results(
        cls, pairings: Sequence[PairResults], programs: dict[str, str], *, max_plies: int,
        origin: Json,
    ) -> Self:
        """Rate the players of ``pairings``, with the random player at 0.

        Raises:
            RatingError: the results leave a player's rating open; more games may close it.
        """
        table = Crosstable.from_games(game for pairing in pairings for game in pairing.games())
        ratings = fit_ratings(table)
        for rating in ratings.table:
            if not math.isfinite(rating.elo.width):
                raise RatingError(
                    f"the results leave the rating of {rating.player!r} open: its score is "
                    f"{rating.score:.2f}; play more pairs, or put a player between"
                )
        body = ratings.to_json()
        return cls(_rungs(body), tuple(pairings), programs, max_plies, origin, body)

    @classmethod
    def from_json(cls, body: Json) -> Self:
        """The ladder that :meth:`to_json` wrote.

        Raises:
            CorruptDataError: it is damaged, or of another version.
        """
        if (schema := body.get("schema")) != SCHEMA:
            raise CorruptDataError(
                f"a ladder of schema {schema}, this version reads {SCHEMA}; install chess-snn again"
            )
        try:
            return cls(
                rungs=_rungs(body["ratings"]),
                pairings=tuple(PairResults.from_json(pairing) for pairing in body["pairings"]),
                programs={str(name): str(text) for name, text in body["programs"].items()},
                max_plies=int(body["max_plies"]),
                origin=dict(body["origin"]),
                ratings=dict(body["ratings"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CorruptDataError(
                f"damaged ladder: {error!r}; install chess-snn again"
            ) from error

    @property
    def players(self) -> tuple[str, ...]:
        """Names, the weakest first."""
        return tuple(rung.player for rung in self.rungs)

    @property
    def num_games(self) -> int:
        """Return the number of games that count."""
        return sum(2 * pairing.num_pairs for pairing in self.pairings)

    @property
    def engine(self) -> str | None:
        """Return what the one engine of the ladder calls itself; None where it needs none."""
        return " and ".join(sorted(set(self.programs.values()))) or None

    @property
    def scale(self) -> str:
        """Names the scale of its ratings: ``ladder 1a2b3c4d``, with a digest of them.

        Another ladder, or the same one rated anew, has another scale.
        """
        return f"ladder {json_digest([self.max_plies, self.ratings])[:_DIGEST_LENGTH]}"

    def rung(self, player: str) -> Rung:
        """The rung of a player of the ladder."""
        return self.rungs[self.players.index(player)]

    def games(self) -> list[RatedGame]:
        """All games as they are rated: outcomes, and which two had one opening."""
        return [game for pairing in self.pairings for game in pairing.games()]

    def to_json(self) -> Json:
        """Everything."""
        return {
            "schema": SCHEMA,
            "game": "chess",
            "origin": self.origin,
            "max_plies": self.max_plies,
            "programs": self.programs,
            "ratings": self.ratings,
            "pairings": [pairing.to_json() for pairing in self.pairings],
        }


@functools.cache
def read_ladder() -> Ladder:
    """The ladder that is shipped.

    Raises:
        CorruptDataError: the installed file was truncated or edited.
    """
    file = resources.files("chess_snn.evaluation").joinpath(_DATA, LADDER_FILE)
    try:
        body: Any = json.loads(file.read_bytes())
    except ValueError as error:
        raise CorruptDataError(
            f"the shipped ladder is not JSON ({error}); install chess-snn again"
        ) from error
    return Ladder.from_json(body)


def _rungs(ratings: Json) -> tuple[Rung, ...]:
    """The players of rated results, the weakest first."""
    rows = [
        Rung(
            row["player"], row["elo"],
            -math.inf if row["elo_low"] is None else row["elo_low"],
            math.inf if row["elo_high"] is None else row["elo_high"],
            row["num_games"],
        )
        for row in ratings["players"]
    ]
    return tuple(sorted(rows, key=lambda rung: rung.elo))
