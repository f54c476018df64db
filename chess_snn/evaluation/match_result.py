"""The result of a match between two players.

In a game of one player both play the same seeds, and a seed takes the place of an opening: its two
games are a's and b's, and both score for a what the comparison of their points says.

Dimensions: n games. Games 2i and 2i + 1 begin at opening i; a is white in the first of them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

import numpy as np

from chess_snn.data.records import offsets
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.evaluation.played_moves import pack_moves, unpack_moves
from chess_snn.evaluation.players import ProgramFacts
from chess_snn.evaluation.scores import pair_counts, pair_interval
from chess_snn.evaluation.solo import paired_difference, point_figures
from chess_snn.games.base import ONGOING, GameSpec
from chess_snn.types import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int16Array,
    Int32Array,
    Int64Array,
    Json,
    UInt8Array,
)

CUT: Final = "ply_cap"
"""Ending of a truncated game, named as in self-play."""
FORFEIT_ENDING: Final = "forfeit"
"""Ending of a game that a player's illegal move lost."""
VOID_ENDING: Final = "void"
"""Ending of a game that a program left without an answer."""
_ENDING_WITHOUT_RULE: Final = {0.5: CUT, 0.0: FORFEIT_ENDING, 1.0: FORFEIT_ENDING}
"""Ending by the score of a game that ended by no rule."""
_SCORES: Final = {None: np.nan, 0: 0.0, 0.5: 0.5, 1: 1.0}
"""Possible scores of a game, as JSON has them."""
_COLUMNS: Final = ("scores_a", "terminations", "plies", "actions", "points", "milestones")
"""Arrays that those of several matches are joined to."""
_SOLO_COLUMNS: Final[dict[str, type]] = {"points": float, "milestones": int}
"""Columns of every game, in a game of one player alone."""
DETAILS: Final = ("openings", "per_game")
"""Keys of :meth:`MatchResult.to_json` beyond those of :meth:`MatchResult.summary`."""


@dataclass(frozen=True, slots=True, eq=False)
class MatchResult:
    """Every game of a match of a against b; counts and scores are a's."""

    spec: GameSpec
    """The game played; its ``terminations`` name the termination codes."""
    player_a: str
    player_b: str
    opening_keys: tuple[str, ...]
    """n / 2 names of openings, see :func:`chess_snn.evaluation.openings.opening_keys`; or of seeds,
    see :func:`chess_snn.evaluation.solo.seed_keys`."""
    opening_positions: tuple[str, ...]
    """n / 2 positions in the game's notation (chess: FEN)."""
    scores_a: Float32Array
    """float32[n]: 1 where a won, 0.5 drawn or truncated, 0 where b won, NaN where voided. In a game
    of one player: 1 where a has more points on the seed, 0.5 as many, 0 fewer."""
    terminations: UInt8Array
    """uint8[n]: why the game ended; ``ONGOING`` (0) if not by the rules: it was truncated (score
    0.5), a player forfeited it (0 or 1), or it is void (NaN)."""
    plies: Int32Array
    """int32[n]: half-moves played from the opening on."""
    actions: Int16Array
    """int16[sum of plies]: the actions played, game after game."""
    programs: dict[str, ProgramFacts] = field(default_factory=dict)
    """Facts, by name, of the players that are other programs."""
    points: Float64Array = field(default_factory=lambda: np.empty(0))
    """float64[n]: the game's own score, in a game of one player; else float64[0]."""
    milestones: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    """int64[n]: how far each of these games got; else int64[0]."""
    seconds: tuple[float, float] | None = None
    """Wall clock of a's games and of b's, where each has its own; it is not stored."""

    @property
    def is_solo(self) -> bool:
        """Return whether it is a match of a one-player game."""
        return self.spec.num_players == 1

    @property
    def opening_index(self) -> Int32Array:
        """int32[n]: the opening that each game started from."""
        return np.arange(self.num_games, dtype=np.int32) // np.int32(2)

    @property
    def a_is_white(self) -> BoolArray:
        """bool[n]: whether a was the first player; in a game of one player, whether it is a's."""
        is_white: BoolArray = np.arange(self.num_games) % 2 == 0
        return is_white

    @property
    def game_offsets(self) -> Int64Array:
        """int64[n + 1]: the actions of game k are game_offsets[k] to game_offsets[k + 1]."""
        return offsets(self.plies)

    @property
    def outcomes_white(self) -> Int64Array:
        """int64[n]: 1 where white won, 0 drawn, truncated or void, -1 where black won."""
        for_a = np.rint(2.0 * np.nan_to_num(self.scores_a, nan=0.5) - 1.0).astype(np.int64)
        outcomes: Int64Array = np.where(self.a_is_white, for_a, -for_a)
        return outcomes

    @property
    def endings(self) -> list[str]:
        """Return each game's end: a rule's name, ``CUT``, ``FORFEIT_ENDING`` or ``VOID_ENDING``."""
        names = list(self.spec.terminations)
        without_rule = dict.fromkeys(_ENDING_WITHOUT_RULE, CUT) if self.is_solo else (
            _ENDING_WITHOUT_RULE
        )
        return [
            names[code] if code else without_rule.get(score, VOID_ENDING)
            for code, score in zip(self.terminations.tolist(), self.scores_a.tolist(), strict=True)
        ]

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
        """Openings whose two games both count; the interval of the score rests on them."""
        return int(pair_counts(self).sum())

    @property
    def wins(self) -> int:
        """Games that a won; in a game of one player those of both on the seeds that a won."""
        return int(np.count_nonzero(self.scores_a == 1.0))

    @property
    def losses(self) -> int:
        """Games that b won."""
        return int(np.count_nonzero(self.scores_a == 0.0))

    @property
    def truncated(self) -> int:
        """Truncated games: they score as draws and are not counted as draws."""
        return self._unfinished(0.5)

    @property
    def forfeits_a(self) -> int:
        """Games among the losses in which a made no legal move."""
        return 0 if self.is_solo else self._unfinished(0.0)

    @property
    def forfeits_b(self) -> int:
        """Games among the wins in which b made no legal move."""
        return 0 if self.is_solo else self._unfinished(1.0)

    @property
    def draws(self) -> int:
        """Games drawn by the rules."""
        return self.num_scored - self.wins - self.losses - self.truncated

    @property
    def score(self) -> float:
        """Mean score of a, in [0, 1], over the games that count."""
        return float(np.nanmean(self.scores_a, dtype=np.float64))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Confidence interval (low, high) of the score, from the scores of pairs of games.

        See :func:`chess_snn.evaluation.scores.pair_interval`. A game whose other game is void
        counts in the score only; the interval is then widened to hold the score.
        """
        low, high = pair_interval(pair_counts(self), confidence)
        return min(float(low), self.score), max(float(high), self.score)

    @property
    def terminations_by_name(self) -> dict[str, int]:
        """Games by way of ending, see :attr:`endings`; the most frequent first, others absent."""
        return dict(Counter(self.endings).most_common())

    def points_ahead(self) -> Json:
        """Return by how many points a is ahead of b on a seed: ``mean`` and 95 % interval."""
        return paired_difference(*self.points.reshape(-1, 2).T)

    def point_figures(self) -> Json:
        """Return figures of ``a``'s and ``b``'s games, and ``ahead``, in a game of one player."""
        sides = {"a": self.a_is_white, "b": ~self.a_is_white}
        figures = {
            name: point_figures(
                self.spec, self.points[own], self.milestones[own], self.plies[own]
            )
            for name, own in sides.items()
        }
        return figures | {"ahead": self.points_ahead()}

    def summary(self) -> Json:
        """Game, names, counts, score with its 95 % interval, endings, mean plies and programs.

        And ``points``, in a game of one player: see :meth:`point_figures`.
        """
        low, high = self.interval()
        points = {"points": self.point_figures()} if self.is_solo else {}
        return points | {
            "game": self.spec.name,
            "player_a": self.player_a,
            "player_b": self.player_b,
            "num_games": self.num_games,
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "truncated": self.truncated,
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

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """One match of several between the same players, whose openings stand in this order."""
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS
        }
        return cls(
            spec=parts[0].spec, player_a=parts[0].player_a, player_b=parts[0].player_b,
            opening_keys=tuple(key for part in parts for key in part.opening_keys),
            opening_positions=tuple(text for part in parts for text in part.opening_positions),
            programs=_programs_of(parts), **columns,
        )

    @classmethod
    def from_json(cls, spec: GameSpec, body: Json) -> Self:
        """The match that :meth:`to_json` wrote.

        Args:
            spec: of the game played.
            body: as written; other keys are ignored.

        Raises:
            CorruptDataError: it is damaged.
        """
        try:
            games, openings = body["per_game"], body["openings"]
            result = cls(
                spec=spec, player_a=_text(body["player_a"]), player_b=_text(body["player_b"]),
                opening_keys=tuple(map(_text, openings["key"])),
                opening_positions=tuple(map(_text, openings["position"])),
                scores_a=np.array([_SCORES[score] for score in games["score_a"]], np.float32),
                terminations=np.array(
                    [spec.terminations.index(name) for name in games["termination"]], np.uint8
                ),
                plies=np.array(_each(int, games["plies"]), np.int32),
                actions=unpack_moves(games["moves"], games["plies"]),
                programs={
                    name: ProgramFacts(**facts)
                    for name, facts in body.get("programs", {}).items()
                },
                **_solo_columns(games, is_solo=spec.num_players == 1),
            )
            result._check(games)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise CorruptDataError(f"damaged match: {error!r}; play it again") from error
        return result

    def _check(self, games: Json) -> None:
        """Refuse columns ``games`` of different lengths, or in another order than ours."""
        lengths = {len(self.terminations), len(self.plies)}
        lengths |= {2 * len(self.opening_keys), 2 * len(self.opening_positions)}
        if self.is_solo:
            lengths |= {len(self.points), len(self.milestones)}
        if lengths != {self.num_games}:
            raise ValueError("columns of different lengths")
        order = self._columns_in_order()
        if {name: games[name] for name in order} != order:
            raise ValueError("games that are not in the order of openings and colours")

    def _columns_in_order(self) -> Json:
        """Return the columns in the order of the games that files have."""
        return {
            "opening_index": self.opening_index.tolist(), "a_is_white": self.a_is_white.tolist(),
        }

    def to_json(self) -> Json:
        """:meth:`summary`, the openings, and under ``"per_game"`` the columns of every game.

        The score of a voided game is null.
        """
        columns = self._columns_in_order() | {
            "score_a": [None if np.isnan(score) else score for score in self.scores_a.tolist()],
            "termination": [self.spec.terminations[code] for code in self.terminations],
            "plies": self.plies.tolist(),
            "moves": pack_moves(self.actions, self.game_offsets),
        }
        if self.is_solo:
            columns |= {name: getattr(self, name).tolist() for name in _SOLO_COLUMNS}
        openings = {"key": list(self.opening_keys), "position": list(self.opening_positions)}
        return self.summary() | {"openings": openings, "per_game": columns}

    def _unfinished(self, score_a: float) -> int:
        """Games of that score that did not end by the rules."""
        return int(np.count_nonzero((self.terminations == ONGOING) & (self.scores_a == score_a)))


def identities_of(results: Iterable[MatchResult]) -> dict[str, str]:
    """Return the identity of the program behind each player that is one, by name.

    Results that are joined keep one identity a program: ask before that.

    Raises:
        UsageError: it changed from one result to another: they are different players.
    """
    identities: dict[str, str] = {}
    for result in results:
        for name, facts in result.programs.items():
            if identities.setdefault(name, facts.identity) != facts.identity:
                raise UsageError(
                    f"{name} was {identities[name]} in some games and {facts.identity} in others"
                )
    return identities


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _each(kind: type[Any], values: object) -> list[Any]:
    """``values``, a list of nothing but ``kind``: numpy would take texts and fractions too."""
    if not isinstance(values, list) or any(type(value) is not kind for value in values):
        raise TypeError(f"a column must be a list of {kind.__name__}")
    return values


def _solo_columns(games: Json, *, is_solo: bool) -> dict[str, Any]:
    """Return those of ``_SOLO_COLUMNS``, none of them in a game of two players."""
    kinds = _SOLO_COLUMNS if is_solo else {}
    return {name: np.array(_each(kind, games[name]), kind) for name, kind in kinds.items()}


def _programs_of(parts: Sequence[MatchResult]) -> dict[str, ProgramFacts]:
    """Merge what the parts say of each program: failures add up, the last of them is kept."""
    programs: dict[str, ProgramFacts] = {}
    for part in parts:
        for name, facts in part.programs.items():
            programs[name] = programs[name].followed_by(facts) if name in programs else facts
    return programs
