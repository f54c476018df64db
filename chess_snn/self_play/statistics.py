"""What self-play says about the games it played, for one shard or for many together."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Final

import numpy as np

from chess_snn.data.records import GameRecords
from chess_snn.games.base import ONGOING, GameSpec, termination_counts
from chess_snn.self_play.resignation import is_resigned
from chess_snn.self_play.starts import ORDINARY, PRACTICE
from chess_snn.types import Json

PLY_CAP: Final = "ply_cap"
"""Name of the termination of a game that was cut."""
RESIGNED: Final = "resigned"
"""Name of the termination of a game that a side gave up."""


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
    """Games by the way they ended; ``ply_cap`` are the ones cut, ``resigned`` the ones given up."""
    ordinary_games: int
    """Games that began at the beginning; the counts below are comparable over a campaign."""
    ordinary_draws: int
    """Those of them that nobody won, cut games included."""
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

    @property
    def plies_mean(self) -> float:
        """Mean plies a game."""
        return self.positions / self.games

    @property
    def white_rate(self) -> float:
        """Share of games white won."""
        return self.white_wins / self.games

    @property
    def black_rate(self) -> float:
        """Share of games black won."""
        return self.black_wins / self.games

    @property
    def draw_rate(self) -> float:
        """Share of games nobody won, cut games included."""
        return (self.games - self.white_wins - self.black_wins) / self.games

    @property
    def cut_rate(self) -> float:
        """Share of games the ply cap cut."""
        return self.terminations.get(PLY_CAP, 0) / self.games

    @property
    def resigned(self) -> int:
        """Games that a side gave up."""
        return self.terminations.get(RESIGNED, 0)

    @property
    def ordinary_draw_rate(self) -> float:
        """Share of ordinary games nobody won, cut games included."""
        return _ratio(self.ordinary_draws, self.ordinary_games)

    @property
    def ordinary_plies_mean(self) -> float:
        """Mean plies of an ordinary game."""
        return _ratio(self.ordinary_positions, self.ordinary_games)

    @property
    def practice_win_rate(self) -> float:
        """Share of practice games that either side won."""
        return _ratio(self.practice_wins, self.practice_games)

    @property
    def mean_abs_value(self) -> float:
        """Mean size of the root value, in [0, 1]."""
        return self.abs_value_sum / self.positions

    @property
    def surprise_mean(self) -> float:
        """Mean of how far the search moved the policy, nats."""
        return self.surprise_sum / self.positions

    @property
    def network_share(self) -> float:
        """Share of the time spent in the network."""
        return self.network_seconds / self.seconds if self.seconds else 0.0

    @property
    def entropy_ratio(self) -> float:
        """Entropy of the policy over that of a uniform one, in [0, 1]."""
        return self.entropy_sum / self.uniform_entropy_sum if self.uniform_entropy_sum else 1.0

    def metrics(self) -> dict[str, float]:
        """The figures people plot, by name; those of games of which there are none are left out."""
        figures = {
            "games": self.games,
            "positions": self.positions,
            "plies_mean": self.plies_mean,
            "plies_min": self.plies_min,
            "plies_max": self.plies_max,
            "white_rate": self.white_rate,
            "draw_rate": self.draw_rate,
            "black_rate": self.black_rate,
            "cut_rate": self.cut_rate,
            "ordinary_draw_rate": self.ordinary_draw_rate,
            "ordinary_plies_mean": self.ordinary_plies_mean,
            "practice_win_rate": self.practice_win_rate,
            "mean_abs_value": self.mean_abs_value,
            "surprise_mean": self.surprise_mean,
            "entropy_ratio": self.entropy_ratio,
            "network_share": self.network_share,
            **{f"ended_{name}": count / self.games for name, count in self.terminations.items()},
        }
        return {name: figure for name, figure in figures.items() if not math.isnan(figure)}

    def to_json(self) -> Json:
        """The fields as a JSON object; :meth:`from_json` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, body: Json) -> "SelfPlayStatistics":
        """Inverse of :meth:`to_json`."""
        return cls(**body)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def statistics_of(
    spec: GameSpec, records: GameRecords, *, entropy_sum: float, uniform_entropy_sum: float,
    seconds: float, network_seconds: float,
) -> SelfPlayStatistics:
    """Statistics of ``records`` with the sums and clocks that only the player of them knows."""
    plies = np.diff(records.game_offsets)
    is_won = records.outcomes_white != 0
    ordinary = records.start_kinds == ORDINARY
    practice = records.start_kinds == PRACTICE
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
    )


def _endings(spec: GameSpec, records: GameRecords) -> dict[str, int]:
    """Games by the way they ended, sorted by name."""
    codes = records.terminations
    endings = termination_counts(spec, codes[codes != ONGOING])
    num_resigned = int(is_resigned(records).sum())
    for name, count in (
        (RESIGNED, num_resigned),
        (PLY_CAP, int((codes == ONGOING).sum()) - num_resigned),
    ):
        if count:
            endings[name] = count
    return dict(sorted(endings.items()))


_NOT_SUMMED: Final = {"plies_min", "plies_max", "terminations"}
_SUMMED: Final = [
    field.name for field in fields(SelfPlayStatistics) if field.name not in _NOT_SUMMED
]


def combine(parts: Sequence[SelfPlayStatistics]) -> SelfPlayStatistics:
    """Statistics of all games of ``parts``, of which there must be one at least."""
    terminations: Counter[str] = Counter()
    for part in parts:
        terminations.update(part.terminations)
    return SelfPlayStatistics(
        plies_min=min(part.plies_min for part in parts),
        plies_max=max(part.plies_max for part in parts),
        terminations=dict(sorted(terminations.items())),
        **{name: sum(getattr(part, name) for part in parts) for name in _SUMMED},
    )
