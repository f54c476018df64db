"""The ladder: players whose ratings are known from many games between them, and their results.

Ratings are kept for people to read. To rate a new player, its games are fitted together with the
ladder's (:meth:`Ladder.games`), so that what is not known of the ladder widens its interval.
"""

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Final, Self

import numpy as np

from chess_snn.data import json_digest
from chess_snn.evaluation.ratings.crosstable import RatedGame
from chess_snn.types import Int64Array, Json

_OUTCOMES: Final = (1, 0, -1)
"""Numbers of (win, draw, loss)."""
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

    @classmethod
    def from_json(cls, body: Json) -> Self:
        """The results that a file of a ladder has of one pairing."""
        return cls(body["player_a"], body["player_b"], np.array(body["pairs"], np.int64))

    def games(self) -> Iterator[RatedGame]:
        """The games; every opening has a name that occurs in no other pairing."""
        opening = 0
        for (white, black), count in np.ndenumerate(self.counts):
            for _ in range(count):
                name = f"ladder:{self.player_a}:{self.player_b}:{opening}"
                yield RatedGame(self.player_a, self.player_b, _OUTCOMES[white], name)
                yield RatedGame(self.player_b, self.player_a, -_OUTCOMES[black], name)
                opening += 1


@dataclass(frozen=True, slots=True)
class Rung:
    """A player of the ladder."""

    player: str
    elo: float
    """Above the random player."""
    elo_low: float
    elo_high: float
    """95 % interval, 0 wide at the random player."""
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
    def from_json(cls, body: Json) -> Self:
        """The ladder that ``python -m benchmarks ladder`` wrote."""
        rungs = [
            Rung(row["player"], row["elo"], row["elo_low"], row["elo_high"], row["num_games"])
            for row in body["ratings"]["players"]
        ]
        return cls(
            rungs=tuple(sorted(rungs, key=lambda rung: rung.elo)),
            pairings=tuple(map(PairResults.from_json, body["pairings"])),
            programs=body["programs"],
            max_plies=body["max_plies"],
            origin=body["origin"],
            ratings=body["ratings"],
        )

    @property
    def players(self) -> tuple[str, ...]:
        """Names, the weakest first."""
        return tuple(rung.player for rung in self.rungs)

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


@functools.cache
def read_ladder() -> Ladder:
    """The ladder that is shipped."""
    file = resources.files("chess_snn.evaluation").joinpath(_DATA, LADDER_FILE)
    return Ladder.from_json(json.loads(file.read_bytes()))
