"""What self-play says about the games it played, for one shard or for many together."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from chess_snn.data.records import GameRecords
from chess_snn.games.base import ONGOING, GameSpec
from chess_snn.types import Json

PLY_CAP = "ply_cap"
"""Name of the termination of a game that was cut."""


@dataclass(frozen=True, slots=True)
class SelfPlayStatistics:
    """Counts and clocks of a set of games. Rates are derived, so that parts can be added up."""

    games: int
    positions: int
    plies_min: int
    plies_max: int
    white_wins: int
    black_wins: int
    terminations: dict[str, int]
    """Games by the way they ended; ``ply_cap`` are the ones cut."""
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
    def network_share(self) -> float:
        """Share of the time spent in the network."""
        return self.network_seconds / self.seconds if self.seconds else 0.0

    @property
    def entropy_ratio(self) -> float:
        """Entropy of the policy over that of a uniform one, in [0, 1]."""
        return self.entropy_sum / self.uniform_entropy_sum if self.uniform_entropy_sum else 1.0

    def metrics(self) -> dict[str, float]:
        """The figures people plot, by name."""
        return {
            "games": self.games,
            "positions": self.positions,
            "plies_mean": self.plies_mean,
            "plies_min": self.plies_min,
            "plies_max": self.plies_max,
            "white_rate": self.white_rate,
            "draw_rate": self.draw_rate,
            "black_rate": self.black_rate,
            "entropy_ratio": self.entropy_ratio,
            "network_share": self.network_share,
            **{f"ended_{name}": count / self.games for name, count in self.terminations.items()},
        }

    def to_json(self) -> Json:
        """The fields as a JSON object; :meth:`from_json` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, body: Json) -> "SelfPlayStatistics":
        """Inverse of :meth:`to_json`."""
        return cls(**body)


def statistics_of(
    spec: GameSpec, records: GameRecords, *, entropy_sum: float, uniform_entropy_sum: float,
    seconds: float, network_seconds: float,
) -> SelfPlayStatistics:
    """Statistics of ``records`` with the sums and clocks that only the player of them knows."""
    plies = np.diff(records.game_offsets)
    names = [PLY_CAP if code == ONGOING else spec.terminations[code]
             for code in records.terminations]
    return SelfPlayStatistics(
        games=records.num_games,
        positions=records.num_positions,
        plies_min=int(plies.min()),
        plies_max=int(plies.max()),
        white_wins=int((records.outcomes_white > 0).sum()),
        black_wins=int((records.outcomes_white < 0).sum()),
        terminations=dict(sorted(Counter(names).items())),
        entropy_sum=entropy_sum,
        uniform_entropy_sum=uniform_entropy_sum,
        seconds=seconds,
        network_seconds=network_seconds,
    )


def combine(parts: Sequence[SelfPlayStatistics]) -> SelfPlayStatistics:
    """Statistics of all games of ``parts``, of which there must be one at least."""
    terminations: Counter[str] = Counter()
    for part in parts:
        terminations.update(part.terminations)
    return SelfPlayStatistics(
        games=sum(part.games for part in parts),
        positions=sum(part.positions for part in parts),
        plies_min=min(part.plies_min for part in parts),
        plies_max=max(part.plies_max for part in parts),
        white_wins=sum(part.white_wins for part in parts),
        black_wins=sum(part.black_wins for part in parts),
        terminations=dict(sorted(terminations.items())),
        entropy_sum=sum(part.entropy_sum for part in parts),
        uniform_entropy_sum=sum(part.uniform_entropy_sum for part in parts),
        seconds=sum(part.seconds for part in parts),
        network_seconds=sum(part.network_seconds for part in parts),
    )
