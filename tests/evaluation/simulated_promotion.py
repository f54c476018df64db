"""Campaigns whose networks have known strengths: which of them becomes champion.

Each generation plays random (0) and greedy (900), and then the champion. All games are drawn from
the model of the ratings, and the ratings are fitted as in a campaign.
"""

from dataclasses import dataclass

import numpy as np
from simulated_games import chances, table_of

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.receipt_parts import PromotionFacts
from chess_snn.campaign.strength.gating_match import decide
from chess_snn.campaign.strength.match_schedule import player_name
from chess_snn.campaign.strength.ratings import RatedCampaign
from chess_snn.evaluation.comparison import SPRT_BOUND, sprt
from chess_snn.evaluation.ratings.fit import fit_ratings
from chess_snn.evaluation.scores import PAIR_SCORES

OPPONENTS = {"random": 0.0, "greedy": 900.0}
COLOUR = 30.0
CONFIG = CampaignConfig()
HYPOTHESES = CONFIG.promotion.elo0, CONFIG.promotion.elo1
FORMER = 0.0, 75.0
"""The hypotheses of the rule of record 19, by which only an accepted candidate was promoted."""
LEARNING = {
    "10 a generation": lambda n, stream: np.full(n, 10.0),
    "20 a generation": lambda n, stream: np.full(n, 20.0),
    "30 a generation": lambda n, stream: np.full(n, 30.0),
    "270 in 6 generations": lambda n, stream: np.full(n, 54.0),
    "plateau": lambda n, stream: 80 * 0.7 ** np.arange(n),
    "10 a generation, noise of 40": lambda n, stream: 10 + np.diff(stream.normal(0, 40, n + 1)),
    "25 a generation, loses 200 in the middle": lambda n, stream: np.where(
        np.arange(n) == n // 2, -200.0, 25.0
    ),
    "40 a generation, then -8": lambda n, stream: np.where(np.arange(n) < n // 3, 40.0, -8.0),
}
"""Gains in Elo points from one evaluated generation to the next."""


@dataclass
class Campaign:
    """The games so far of one simulated campaign."""

    draw_rate: float
    stream: np.random.Generator

    def __post_init__(self):
        self.columns, self.names = [], ["random"]

    def play(self, a, b, elos, num_pairs):
        """Play both colours of each opening; returns the pairs by a's score."""
        for name in (a, b):
            if name not in self.names:
                self.names.append(name)
        outcomes = []
        for white, black in ((a, b), (b, a)):
            odds = chances(elos[white], elos[black], COLOUR, self.draw_rate)
            outcomes.append(1 - self.stream.choice(3, size=num_pairs, p=odds))
            seats = np.tile([[self.names.index(white)], [self.names.index(black)]], num_pairs)
            openings = np.arange(num_pairs) + sum(part.shape[1] for part in self.columns)
            self.columns.append(np.stack([*seats, outcomes[-1], openings]))
        # Both games of an opening have its number.
        self.columns[-1][3] = self.columns[-2][3]
        return np.bincount(outcomes[0] - outcomes[1] + 2, minlength=5)

    def ratings(self):
        table = table_of(self.names, *np.concatenate(self.columns, axis=1))
        return fit_ratings(table, "random")


def champions(elos, draw_rate, stream, *, rule="now", max_openings=32, num_openings=25):
    """Which of the generations ``elos`` is champion after each of them; the first one is 0."""
    campaign, promotion = Campaign(draw_rate, stream), CONFIG.promotion
    budget = CONFIG.evaluation.simulations
    names = [player_name(number, budget) for number in range(len(elos))]
    strengths = OPPONENTS | dict(zip(names, elos, strict=True))
    hypotheses = FORMER if rule == "test" else HYPOTHESES
    found = [0]
    for candidate in range(len(elos)):
        for opponent in OPPONENTS:
            campaign.play(names[candidate], opponent, strengths, num_openings)
        if not candidate:
            continue
        champion, counts = found[-1], np.zeros(5, np.int64)
        for _ in range(0, max_openings, promotion.openings_each):
            counts += campaign.play(
                names[candidate], names[champion], strengths, promotion.openings_each
            )
            if sprt(counts, *hypotheses).state != "continue":
                break
        if rule == "test":
            is_promoted = sprt(counts, *hypotheses).state == "accept"
        else:
            facts = decide(
                CONFIG, facts_of(candidate, champion, counts),
                RatedCampaign(campaign.ratings(), (), ()),
            )
            is_promoted = facts.verdict == "accept"
        found.append(candidate if is_promoted else champion)
    return np.array(found)


def facts_of(candidate, champion, counts, **others):
    """Facts of a gating match by its pairs."""
    counts, (elo0, elo1) = np.array(counts), HYPOTHESES
    looked = sprt(counts, elo0, elo1)
    return PromotionFacts(**{
        "candidate": candidate, "champion": champion, "verdict": "undecided", "llr": looked.llr,
        "lower": -SPRT_BOUND, "upper": SPRT_BOUND, "elo0": elo0, "elo1": elo1,
        "simulations": CONFIG.evaluation.simulations, "games": 2 * int(counts.sum()), "wins": 0,
        "draws": 0, "losses": 0, "truncated": 2 * int(counts.sum()), "pairs": counts.tolist(),
        "score": float(counts @ PAIR_SCORES / counts.sum()),
    } | others)


@dataclass
class Outcome:
    """Figures over all generations after the first, of all campaigns of one kind."""

    regret: float
    """Mean Elo points by which the champion is below the best generation so far."""
    far_behind: float
    """Share of generations more than 50 points better than the champion after their gate."""


def simulate(kind, draw_rate, num_campaigns, num_generations, seed, **settings):
    stream = np.random.default_rng(seed)
    regrets, behind = [], []
    for _ in range(num_campaigns):
        gains = LEARNING[kind](num_generations - 1, stream)
        elos = 300 + np.concatenate([[0], np.cumsum(gains)])
        found = champions(elos, draw_rate, stream, **settings)
        reigning = elos[found]
        regrets.append((np.maximum.accumulate(elos) - reigning)[1:])
        behind.append((elos - reigning)[1:] > 50)
    return Outcome(float(np.mean(regrets)), float(np.mean(behind)))
