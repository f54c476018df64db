"""The ladder: players whose ratings are known from many games between them, and what those were.

Ratings are kept for people to read; whoever rates a new player fits its games together with the
ladder's (:meth:`Ladder.games`), so that what is not known of the ladder widens its interval.
"""

import functools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final, Self

from chess_snn.errors import CorruptDataError, RatingError
from chess_snn.evaluation.ladder.pair_results import PairResults
from chess_snn.evaluation.ratings import (
    Crosstable,
    RatedGame,
    fit_ratings,
    held_out_check,
)
from chess_snn.types import Json

SCHEMA: Final = 1
LADDER_FILE: Final = "ladder.json"
GAMES_FILE: Final = "ladder.games.zst"
"""Beside it: every game, see :func:`chess_snn.evaluation.ladder.unpack_games`."""
_DATA: Final = "data"


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
    """By name, what the programs behind players call themselves: ``Stockfish 15.1``."""
    max_plies: int
    """Games were cut after so many half-moves."""
    origin: Json
    """How it was made: ``date``, ``command``, ``seed``, ``version`` of chess-snn."""
    ratings: Json
    """What was fitted, see :meth:`chess_snn.evaluation.Ratings.to_json`."""
    held_out: Json
    """How well it predicts games that were not fitted, see
    :meth:`chess_snn.evaluation.HeldOutCheck.to_json`."""

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
        held_out, body = held_out_check(table), ratings.to_json()
        return cls(
            _rungs(body), tuple(pairings), programs, max_plies, origin, body, held_out.to_json()
        )

    @classmethod
    def from_json(cls, body: Json) -> Self:
        """The ladder that :meth:`to_json` wrote.

        Raises:
            CorruptDataError: it is damaged, or of another version.
        """
        if body.get("schema") != SCHEMA:
            raise CorruptDataError(
                f"a ladder of schema {body.get('schema')}, this version reads {SCHEMA}; make it "
                "again with `chess-snn ladder make`"
            )
        try:
            return cls(
                rungs=_rungs(body["ratings"]),
                pairings=tuple(map(PairResults.from_json, body["pairings"])),
                programs={str(name): str(text) for name, text in body["programs"].items()},
                max_plies=int(body["max_plies"]),
                origin=dict(body["origin"]),
                ratings=dict(body["ratings"]),
                held_out=dict(body["held_out"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CorruptDataError(
                f"damaged ladder: {error!r}; install chess-snn again, or make it again"
            ) from error

    @property
    def players(self) -> tuple[str, ...]:
        """Names, the weakest first."""
        return tuple(rung.player for rung in self.rungs)

    @property
    def num_games(self) -> int:
        """That count."""
        return sum(2 * pairing.num_pairs for pairing in self.pairings)

    @property
    def engine(self) -> str | None:
        """What the one engine of the ladder calls itself; None where it needs none."""
        return " and ".join(sorted(set(self.programs.values()))) or None

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
            "held_out": self.held_out,
            "pairings": [pairing.to_json() for pairing in self.pairings],
        }


@functools.cache
def read_ladder() -> Ladder:
    """The ladder that is shipped.

    Raises:
        CorruptDataError: the installed file was cut or edited.
    """
    file = resources.files("chess_snn.evaluation").joinpath(_DATA, LADDER_FILE)
    try:
        body: Any = json.loads(file.read_bytes())
    except ValueError as error:
        raise CorruptDataError(
            f"the shipped ladder is not JSON ({error}); install chess-snn again"
        ) from error
    return Ladder.from_json(body)


def shipped_games() -> bytes:
    """The games of the shipped ladder, packed."""
    return resources.files("chess_snn.evaluation").joinpath(_DATA, GAMES_FILE).read_bytes()


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
