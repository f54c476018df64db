"""Whether the ladder holds here: its engines are installed, and games are like its games.

Games played now and the ladder's are samples of the same pairs of games if nothing has changed: the
engine, the rules, the players. So all pairs of a pairing, old and new, are put together, and the
new ones should be like any draw of as many from them (the permutation test of Fisher 1935 and
Pitman 1937, "Significance tests which may be applied to samples from any populations", JRSS
Supplement 4). The distribution of their points is exact, however few they are, and assumes nothing
of ratings. Pairings are independent, so a player's points over all its pairings have the
convolution of their distributions.

Dimensions: five kinds of pairs, by their points in halves of a game: 0 to 4.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from chess_snn.config import check_range
from chess_snn.errors import EngineError, RatingError
from chess_snn.evaluation.engines import EngineSettings
from chess_snn.evaluation.ladder.ladder import Ladder, PairResults
from chess_snn.evaluation.ladder.playing import uses_engine
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.players import program_of
from chess_snn.evaluation.scores import PAIR_SCORES
from chess_snn.games import get_game
from chess_snn.types import Float64Array, Int64Array

_MOST_POINTS: Final = len(PAIR_SCORES) - 1
"""Halves of a game that a pair is worth."""


@dataclass(frozen=True, slots=True)
class AvailablePlayers:
    """The players that can be played, and why the others cannot."""

    players: tuple[str, ...]
    """In the order in which they were asked for."""
    notice: str | None
    """One line: what is missing, and what helps; None if nothing is."""
    approximate: Mapping[str, str] = field(default_factory=dict)
    """Those among ``players`` whose engine is of another version than in the ladder's games, and
    what it calls itself."""


def available_players(
    ladder: Ladder, players: Sequence[str], engines: EngineSettings, *,
    with_other_versions: bool = False,
) -> AvailablePlayers:
    """The players among ``players`` that are the same here as in the ladder's games.

    Another version of the engine is another player: its rating is known approximately.

    Args:
        ladder: whose players they are.
        players: names.
        engines: how engines are run.
        with_other_versions: keep the players whose engine is of another version, as approximate.
    """
    missing: set[str] = set()
    approximate: dict[str, str] = {}
    notices = []
    engine_players = [name for name in players if uses_engine(name)]
    for program in sorted({ladder.programs[name] for name in engine_players}):
        names = [name for name in engine_players if ladder.programs[name] == program]
        fault, installed = _compare_program(program, names[0], engines)
        if with_other_versions and installed:
            approximate |= dict.fromkeys(names, installed)
            notices.append(f"{installed} plays the rungs of {program}: they are approximate")
        elif fault:
            missing |= set(names)
            notices.append(
                f"the ladder is without the {len(names)} players that need {program}: {fault}"
            )
    available = tuple(name for name in players if name not in missing)
    return AvailablePlayers(available, "; ".join(notices) or None, approximate)


def _compare_program(program: str, player: str, engines: EngineSettings) -> tuple[str, str]:
    """Why ``player`` is not played by ``program`` here, and by what instead; else empty texts."""
    try:
        facts = program_of(make_player(get_game("chess"), player, engines))
    except EngineError as error:
        return str(error), ""
    if facts is None or facts.identity == program:
        return "", ""
    return (
        f"they were rated as {program}, and {facts.identity} is installed, another player; "
        f"install {program}, or make a ladder of your own with `chess-snn ladder make`",
        facts.identity,
    )


@dataclass(frozen=True, slots=True)
class CheckedScore:
    """A score in games played now, beside what the ladder's games allow it to be."""

    player: str
    opponent: str | None
    """None: all opponents of the ladder together."""
    num_pairs: int
    """Played now."""
    ladder_score: float
    """In the ladder's games, in [0, 1]; over all opponents, as often as they are met now."""
    score: float
    """In the new ones."""
    low: float
    high: float
    """Where the score lies if nothing has changed: all of the check together is then within its
    intervals with the probability asked for, or more."""

    @property
    def is_within(self) -> bool:
        """Whether the new score lies in its interval."""
        # Scores are quotients of whole numbers; the margin is for their rounding only.
        return self.low - 1e-9 <= self.score <= self.high + 1e-9


def check_results(
    ladder: Sequence[PairResults], played: Sequence[PairResults], confidence: float = 0.95
) -> list[CheckedScore]:
    """Compare every pairing that was played, and every player over all of its pairings.

    Args:
        ladder: its pairings.
        played: some of them, played again with other random numbers; each with one pair at least.
        confidence: with which all of it is within its intervals if nothing has changed, in (0, 1).
            Each of n comparisons has its share (1 - confidence) / n of the risk (Bonferroni).

    Returns:
        The players in the order in which they first appear in ``played``, then the pairings.

    Raises:
        RatingError: a pairing is none of the ladder's, or was not played.
    """
    check_range("confidence", confidence, gt=0.0, lt=1.0)
    known = {(pairing.player_a, pairing.player_b): pairing for pairing in ladder}
    samples: dict[str, list[_Sample]] = {}
    pairings = []
    for now in played:
        old = known.get((now.player_a, now.player_b))
        if old is None or not now.num_pairs:
            raise RatingError(
                f"{now.player_a} against {now.player_b} cannot be checked: "
                + ("it has no whole pair of games" if old else "the ladder has no such pairing")
            )
        sample = _Sample(now.player_a, now.player_b, old.pentanomial, now.pentanomial)
        pairings.append(sample)
        samples.setdefault(now.player_a, []).append(sample)
        samples.setdefault(now.player_b, []).append(sample.mirrored())
    risk = (1.0 - confidence) / (len(pairings) + len(samples))
    return [
        *(_compare(player, None, own, risk) for player, own in samples.items()),
        *(_compare(sample.player, sample.opponent, [sample], risk) for sample in pairings),
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """A pairing from one side: its pairs by their points, in the ladder and now."""

    player: str
    opponent: str
    old: Int64Array
    new: Int64Array

    def mirrored(self) -> "_Sample":
        return _Sample(self.opponent, self.player, self.old[::-1], self.new[::-1])


def _compare(
    player: str, opponent: str | None, samples: Sequence[_Sample], risk: float
) -> CheckedScore:
    chances = np.ones(1)
    for sample in samples:
        chances = np.convolve(
            chances, points_distribution(sample.old + sample.new, int(sample.new.sum()))
        )
    points = np.arange(_MOST_POINTS + 1)
    sizes = np.array([sample.new.sum() for sample in samples])
    num_pairs = int(sizes.sum())
    most = _MOST_POINTS * num_pairs
    old_scores = np.array([
        (sample.old * points).sum() / (_MOST_POINTS * sample.old.sum()) for sample in samples
    ])
    below = np.cumsum(chances)
    # Sums of chances miss 1 by their rounding, which must not open or close an interval.
    low = int(np.searchsorted(below, 0.5 * risk * (1.0 - 1e-9)))
    high = most - int(np.searchsorted(np.cumsum(chances[::-1]), 0.5 * risk * (1.0 - 1e-9)))
    return CheckedScore(
        player=player,
        opponent=opponent,
        num_pairs=num_pairs,
        ladder_score=float((old_scores * sizes).sum() / num_pairs),
        score=float(sum((sample.new * points).sum() for sample in samples) / most),
        low=low / most,
        high=high / most,
    )


def points_distribution(pairs: Int64Array, num_drawn: int) -> Float64Array:
    """Chances of the points of some pairs drawn without replacement.

    Args:
        pairs: int64[5], all pairs, by their points 0 to 4.
        num_drawn: of them.

    Returns:
        float64[4 * num_drawn + 1], by points.
    """
    ways = np.zeros((num_drawn + 1, _MOST_POINTS * num_drawn + 1))
    ways[0, 0] = 1.0
    for points, available in enumerate(pairs.tolist()):
        longer = np.zeros_like(ways)
        for taken in range(min(available, num_drawn) + 1):
            shift = points * taken
            longer[taken:, shift:] += float(math.comb(available, taken)) * ways[
                : num_drawn + 1 - taken, : ways.shape[1] - shift
            ]
        ways = longer
    chances: Float64Array = ways[num_drawn] / ways[num_drawn].sum()
    return chances
