"""Stores that several campaigns share: whose champion has the alias that they share.

Long campaigns measure their networks by more games than short ones. Every champion is measured
once, with a normal error, when it is new, and takes the alias by one of the rules.
"""

from dataclasses import dataclass

import numpy as np

from chess_snn.campaign.strength.ratings import Strength

HALF_WIDTHS = {"short": 200.0, "long": 90.0}
"""Half widths of the 95 % intervals of tests of 36 games, and of 120."""
_PER_DEVIATION = 1.96


def takes(rule, own: Strength, other: Strength) -> bool:
    if rule == "lower bound":
        return own.is_above(other)
    return own.value > (other.high if rule == "above the interval" else other.value)


RULES = ("last", "estimate", "above the interval", "lower bound")
"""``last``: each new champion takes it."""


@dataclass
class Outcome:
    """Figures over all champions after the first of each store."""

    regret: float
    """Mean points by which the alias is below the best champion so far."""
    worse: float
    """Share of moves of the alias to a network more than 100 points weaker."""


def campaign(kind, stream, behind):
    """True strengths of the champions of one campaign; short ones start ``behind`` long ones."""
    if kind == "short":
        return stream.normal(600 - behind, 100) + np.cumsum(stream.exponential(40, 3))
    return stream.normal(600, 100) + np.cumsum(stream.exponential(40, 12))


def simulate(rule, num_stores, seed, behind, num_campaigns=6):
    stream = np.random.default_rng(seed)
    regrets, moves = [], []
    for _ in range(num_stores):
        holder, best = None, -np.inf
        for _ in range(num_campaigns):
            kind = "long" if stream.random() < 0.3 else "short"
            half = HALF_WIDTHS[kind]
            for truth in campaign(kind, stream, behind):
                value = stream.normal(truth, half / _PER_DEVIATION)
                own = Strength("elo", "ladder", 16, value, value - half, value + half, 40)
                best = max(best, truth)
                if holder is None:
                    holder = truth, own
                    continue
                does = rule == "last" or takes(rule, own, holder[1])
                if does:
                    moves.append(truth < holder[0] - 100)
                holder = (truth, own) if does else holder
                regrets.append(best - holder[0])
    return Outcome(float(np.mean(regrets)), float(np.mean(moves)))
