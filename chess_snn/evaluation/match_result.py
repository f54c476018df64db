"""What a match between two players came to.

Dimensions: n games, in pairs of one opening with the colours swapped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from chess_snn.errors import CorruptDataError
from chess_snn.evaluation.intervals import wilson_interval
from chess_snn.evaluation.played_moves import pack_moves, unpack_moves
from chess_snn.games.base import ONGOING, GameSpec, termination_counts
from chess_snn.types import (
    BoolArray,
    Float32Array,
    Int16Array,
    Int32Array,
    Int64Array,
    Json,
    UInt8Array,
)

SCHEMA: Final = 2
"""Of matches as JSON; version 1 kept no moves."""
CUT: Final = "ply_cap"
"""Ending of a game cut by the ply cap, called as in self-play."""
DETAILS: Final = ("schema", "openings", "per_game")
"""What :meth:`MatchResult.to_json` says beyond :meth:`MatchResult.summary`."""


@dataclass(frozen=True, slots=True, eq=False)
class MatchResult:
    """Every game of a match of a against b; counts and scores are a's."""

    spec: GameSpec
    """The game played; its ``terminations`` name the termination codes."""
    player_a: str
    player_b: str
    opening_keys: tuple[str, ...]
    """n / 2 names of openings; see :func:`chess_snn.evaluation.openings.opening_keys`."""
    opening_positions: tuple[str, ...]
    """n / 2 positions in the game's notation (chess: FEN)."""
    opening_index: Int32Array
    """int32[n]: the opening the game started from; each occurs in two games."""
    a_is_white: BoolArray
    """bool[n]: whether a was the first player; once True and once False an opening."""
    scores_a: Float32Array
    """float32[n]: 1 where a won, 0.5 drawn or capped, 0 where b won."""
    terminations: UInt8Array
    """uint8[n]: why the game ended; ``ONGOING`` (0) where the ply cap cut it."""
    plies: Int32Array
    """int32[n]: half-moves played from the opening on."""
    actions: Int16Array
    """int16[sum of plies]: the actions played, game after game."""

    @property
    def game_offsets(self) -> Int64Array:
        """int64[n + 1]: the actions of game k are game_offsets[k] to game_offsets[k + 1]."""
        return np.concatenate([[0], np.cumsum(self.plies, dtype=np.int64)])

    @property
    def outcomes_white(self) -> Int64Array:
        """int64[n]: 1 where white won, 0 drawn or cut, -1 where black won."""
        for_a = np.rint(2.0 * self.scores_a - 1.0).astype(np.int64)
        outcomes: Int64Array = np.where(self.a_is_white, for_a, -for_a)
        return outcomes

    @property
    def endings(self) -> list[str]:
        """How each game ended: the name of a rule, or ``CUT``."""
        names = (CUT, *self.spec.terminations[1:])
        return [names[code] for code in self.terminations.tolist()]

    @property
    def num_games(self) -> int:
        """Number of games, n."""
        return len(self.scores_a)

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
        return int(np.count_nonzero(self.terminations == ONGOING))

    @property
    def draws(self) -> int:
        """Games drawn by the rules."""
        return self.num_games - self.wins - self.losses - self.capped

    @property
    def score(self) -> float:
        """Mean score of a, in [0, 1]."""
        return float(np.mean(self.scores_a, dtype=np.float64))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Confidence interval (low, high) of the score; a pair of games is one trial.

        The two games of an opening are not independent, pairs are: see
        :func:`chess_snn.evaluation.intervals.wilson_interval`.
        """
        return wilson_interval(self.score, self.num_games // 2, confidence)

    @property
    def terminations_by_name(self) -> dict[str, int]:
        """Games by way of ending; capped ones are ``"ongoing"``, ways that did not occur absent."""
        return termination_counts(self.spec, self.terminations)

    def summary(self) -> Json:
        """Game, names, counts, score with its 95 % interval, terminations and mean plies."""
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
            "score": self.score,
            "score_low": low,
            "score_high": high,
            "mean_plies": float(np.mean(self.plies)),
            "terminations": self.terminations_by_name,
        }

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """One match of several between the same players, whose openings stand in this order."""
        firsts = np.cumsum([0, *(len(part.opening_keys) for part in parts[:-1])])
        return cls(
            spec=parts[0].spec, player_a=parts[0].player_a, player_b=parts[0].player_b,
            opening_keys=tuple(key for part in parts for key in part.opening_keys),
            opening_positions=tuple(text for part in parts for text in part.opening_positions),
            opening_index=np.concatenate([
                part.opening_index + np.int32(first)
                for part, first in zip(parts, firsts, strict=True)
            ]),
            a_is_white=np.concatenate([part.a_is_white for part in parts]),
            scores_a=np.concatenate([part.scores_a for part in parts]),
            terminations=np.concatenate([part.terminations for part in parts]),
            plies=np.concatenate([part.plies for part in parts]),
            actions=np.concatenate([part.actions for part in parts]),
        )

    @classmethod
    def from_json(cls, spec: GameSpec, body: Json) -> Self:
        """The match that :meth:`to_json` wrote.

        Args:
            spec: of the game played.
            body: as written; what else is in it is not looked at.

        Raises:
            CorruptDataError: it is damaged, or of another version.
        """
        if body.get("schema") != SCHEMA:
            raise CorruptDataError(
                f"match of schema {body.get('schema', 1)}, this version reads {SCHEMA}: earlier "
                "ones kept no moves; play it again"
            )
        try:
            games, openings = body["per_game"], body["openings"]
            result = cls(
                spec=spec, player_a=str(body["player_a"]), player_b=str(body["player_b"]),
                opening_keys=tuple(map(str, openings["key"])),
                opening_positions=tuple(map(str, openings["position"])),
                opening_index=np.array(games["opening_index"], np.int32),
                a_is_white=np.array(games["a_is_white"], np.bool_),
                scores_a=np.array(games["score_a"], np.float32),
                terminations=np.array(
                    [spec.terminations.index(name) for name in games["termination"]], np.uint8
                ),
                plies=np.array(games["plies"], np.int32),
                actions=unpack_moves(games["moves"], games["plies"]),
            )
            result._check_lengths()
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptDataError(f"damaged match: {error!r}; play it again") from error
        return result

    def _check_lengths(self) -> None:
        columns = (self.opening_index, self.a_is_white, self.terminations, self.plies)
        num_openings = len(self.opening_keys)
        if {len(column) for column in columns} | {2 * num_openings} != {self.num_games}:
            raise ValueError("columns of different lengths")
        if np.bincount(self.opening_index, minlength=num_openings).tolist() != [2] * num_openings:
            raise ValueError("an opening that was not played twice")
        if len(self.opening_positions) != num_openings:
            raise ValueError("keys and positions of openings of different lengths")

    def to_json(self) -> Json:
        """:meth:`summary`, the openings, and under ``"per_game"`` the columns of every game."""
        columns = {
            "opening_index": self.opening_index.tolist(),
            "a_is_white": self.a_is_white.tolist(),
            "score_a": self.scores_a.tolist(),
            "termination": [self.spec.terminations[code] for code in self.terminations],
            "plies": self.plies.tolist(),
            "moves": pack_moves(self.actions, self.game_offsets),
        }
        openings = {"key": list(self.opening_keys), "position": list(self.opening_positions)}
        return self.summary() | {"schema": SCHEMA, "openings": openings, "per_game": columns}
