"""Statistics of the games of self-play, for one shard or for many together."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Final

import numpy as np

from chess_snn.data.records import GameRecords
from chess_snn.games.base import ONGOING, GameSpec, termination_counts
from chess_snn.self_play.starts import ORDINARY, PRACTICE
from chess_snn.types import Float64Array, Int64Array, Json

PLY_LIMIT: Final = "ply_cap"
"""Name of the termination of a truncated game."""


@dataclass(frozen=True, slots=True)
class SelfPlayStatistics:
    """Counts and clocks of a set of games. Rates are derived, so that parts can be added up.

    A rate or mean over games of which there are none is NaN.
    """

    games: int
    positions: int
    plies_min: int
    plies_max: int
    white_wins: int
    black_wins: int
    terminations: dict[str, int]
    """Games by the way they ended; truncated ones are under :data:`PLY_LIMIT`."""
    ordinary_games: int
    """Games that began at the beginning; the counts below are comparable over a campaign."""
    ordinary_draws: int
    """Those of them without a winner, truncated games included."""
    ordinary_positions: int
    """Positions of ordinary games."""
    practice_games: int
    """Games that began at a position one side should win."""
    practice_wins: int
    """Those of them that either side won."""
    abs_value_sum: float
    """Sum over positions of the size of the root value."""
    surprise_sum: float
    """Sum over positions of how far the search moved the policy, nats."""
    entropy_sum: float
    """Sum over positions of the policy's entropy over legal actions, nats."""
    uniform_entropy_sum: float
    """The same sum for a uniform policy: the log of the number of legal actions."""
    seconds: float
    """Wall clock of the playing; of parallel parts, the sum."""
    network_seconds: float
    """The share of ``seconds`` spent waiting for the network."""
    num_players: int = 2
    """Players of the game. With one there is no winner; the fields below are empty with two."""
    ordinary_points: float = 0.0
    """Sum of the points of ordinary games."""
    point_counts: dict[str, int] = field(default_factory=dict)
    """Ordinary games by their points, rounded to two digits that count."""
    milestone_counts: dict[str, int] = field(default_factory=dict)
    """Ordinary games by how far they got."""

    @property
    def plies_mean(self) -> float:
        """Mean plies a game."""
        return self.positions / self.games

    @property
    def white_rate(self) -> float:
        """Share of games white won; NaN with one player."""
        return _ratio(self.white_wins, self._contests)

    @property
    def black_rate(self) -> float:
        """Share of games black won; NaN with one player."""
        return _ratio(self.black_wins, self._contests)

    @property
    def draw_rate(self) -> float:
        """Share of games without a winner, truncated games included; NaN with one player."""
        return _ratio(self._contests - self.white_wins - self.black_wins, self._contests)

    @property
    def truncated_rate(self) -> float:
        """Share of truncated games."""
        return self.terminations.get(PLY_LIMIT, 0) / self.games

    @property
    def ordinary_draw_rate(self) -> float:
        """Share of ordinary games without a winner or truncated; NaN with one player."""
        return _ratio(self.ordinary_draws, self.ordinary_games if self._contests else 0)

    @property
    def points_mean(self) -> float:
        """Mean points of an ordinary game; NaN with two players."""
        return math.nan if self._contests else _ratio(self.ordinary_points, self.ordinary_games)

    @property
    def points_median(self) -> float:
        """Median of the rounded points of ordinary games; NaN with two players."""
        counts = sorted((float(points), count) for points, count in self.point_counts.items())
        below = np.cumsum([count for _, count in counts])
        middle = np.searchsorted(2 * below, self.ordinary_games)
        return counts[int(middle)][0] if counts else math.nan

    @property
    def reached(self) -> dict[str, float]:
        """Share of ordinary games that got at least so far, by milestone; rising."""
        counts = sorted((int(name), count) for name, count in self.milestone_counts.items())
        return {
            str(milestone): sum(count for other, count in counts if other >= milestone)
            / self.ordinary_games
            for milestone, _ in counts
        }

    @property
    def practice_win_rate(self) -> float:
        """Share of practice games that either side won."""
        return _ratio(self.practice_wins, self.practice_games)

    @property
    def mean_abs_value(self) -> float:
        """Mean size of the root value; in [0, 1] with two players."""
        return self.abs_value_sum / self.positions

    @property
    def network_share(self) -> float:
        """Share of the time spent in the network."""
        return self.network_seconds / self.seconds if self.seconds else 0.0

    @property
    def entropy_ratio(self) -> float:
        """Entropy of the policy over that of a uniform one, in [0, 1]."""
        return self.entropy_sum / self.uniform_entropy_sum if self.uniform_entropy_sum else 1.0

    @property
    def _contests(self) -> int:
        """Games in which there was something to win."""
        return self.games if self.num_players == 2 else 0

    def to_json(self) -> Json:
        """The fields as a JSON object; :meth:`from_json` reads it back.

        Those that only a game of one player has are left out where there are two.
        """
        left_out = _SOLO if self.num_players == 2 else set()
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    @classmethod
    def from_json(cls, body: Json) -> "SelfPlayStatistics":
        """Inverse of :meth:`to_json`."""
        return cls(**body)


_SOLO: Final = {"num_players", "ordinary_points", "point_counts", "milestone_counts"}
"""Fields that are the same for all games of two players."""


def _ratio(part: float, whole: int) -> float:
    return part / whole if whole else math.nan


def statistics_of(
    spec: GameSpec, records: GameRecords, *, entropy_sum: float, uniform_entropy_sum: float,
    seconds: float, network_seconds: float, points: Float64Array | None = None,
    milestones: Int64Array | None = None,
) -> SelfPlayStatistics:
    """Statistics of ``records`` with the sums and clocks that only the player of them knows.

    ``points`` float64[n] and ``milestones`` int64[n] are those of a game of one player.
    """
    plies = np.diff(records.game_offsets)
    is_won = records.outcomes_white != 0
    ordinary = records.start_kinds == ORDINARY
    practice = records.start_kinds == PRACTICE
    solo: Json = {}
    if spec.num_players == 1 and points is not None and milestones is not None:
        solo = {
            "num_players": 1,
            "ordinary_points": float(points[ordinary].sum()),
            "point_counts": _counts(f"{value:.1e}" for value in points[ordinary].tolist()),
            "milestone_counts": _counts(map(str, milestones[ordinary].tolist())),
        }
    return SelfPlayStatistics(
        games=records.num_games,
        positions=records.num_positions,
        plies_min=int(plies.min()),
        plies_max=int(plies.max()),
        white_wins=int((records.outcomes_white > 0).sum()),
        black_wins=int((records.outcomes_white < 0).sum()),
        terminations=_endings(spec, records),
        ordinary_games=int(ordinary.sum()),
        ordinary_draws=int((ordinary & ~is_won).sum()),
        ordinary_positions=int(plies[ordinary].sum()),
        practice_games=int(practice.sum()),
        practice_wins=int((practice & is_won).sum()),
        abs_value_sum=float(np.abs(records.values_stm).sum(dtype=np.float64)),
        surprise_sum=float(records.surprises.sum(dtype=np.float64)),
        entropy_sum=entropy_sum,
        uniform_entropy_sum=uniform_entropy_sum,
        seconds=seconds,
        network_seconds=network_seconds,
        **solo,
    )


def _counts(names: Iterable[str]) -> dict[str, int]:
    """How often each name occurs, sorted by name as numbers are."""
    return dict(sorted(Counter(names).items(), key=lambda entry: float(entry[0])))


def _endings(spec: GameSpec, records: GameRecords) -> dict[str, int]:
    """Games by the way they ended, sorted by name."""
    codes = records.terminations
    endings = termination_counts(spec, codes[codes != ONGOING])
    if num_truncated := int((codes == ONGOING).sum()):
        endings[PLY_LIMIT] = num_truncated
    return dict(sorted(endings.items()))


_COUNTED: Final = ("terminations", "point_counts", "milestone_counts")
_NOT_SUMMED: Final = {"plies_min", "plies_max", "num_players", *_COUNTED}
_SUMMED: Final = [
    field.name for field in fields(SelfPlayStatistics) if field.name not in _NOT_SUMMED
]


def combine(parts: Sequence[SelfPlayStatistics]) -> SelfPlayStatistics:
    """Statistics of all games of ``parts``, of which there must be one at least."""
    counters = {name: Counter[str]() for name in _COUNTED}
    for part in parts:
        for name, counter in counters.items():
            counter.update(getattr(part, name))
    return SelfPlayStatistics(
        plies_min=min(part.plies_min for part in parts),
        plies_max=max(part.plies_max for part in parts),
        num_players=parts[0].num_players,
        terminations=dict(sorted(counters["terminations"].items())),
        point_counts=_counts(counters["point_counts"].elements()),
        milestone_counts=_counts(counters["milestone_counts"].elements()),
        **{name: sum(getattr(part, name) for part in parts) for name in _SUMMED},
    )
