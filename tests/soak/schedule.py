"""Which fault comes when: a sequence that follows from a seed alone.

Faults are dealt from a shuffled deck, so that every kind comes up however short the soak is. What a
sequence does to a campaign also depends on the machine's pace: the seed fixes the faults, their
order, their targets by share and the time between them, not the instant each one meets.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import count

from chess_snn.rng import derive_seed

SHORTEST_WAIT_S = 1.0
MEAN_WAIT_S = 6.0
LONGEST_WAIT_S = 20.0
"""Between two faults, while the campaign is at work."""


class Kind(StrEnum):
    """What is done; the value is for people."""

    KILL_WORKER = "kill -9 a worker"
    FREEZE_WORKER = "freeze a worker"
    KILL_CAMPAIGN = "kill -9 the campaign"
    INTERRUPT_CAMPAIGN = "Ctrl-C the campaign"
    TERMINATE_CAMPAIGN = "SIGTERM the campaign"
    KILL_PREFECT = "kill -9 the Prefect server"
    KILL_MLFLOW = "kill -9 the MLflow server"
    KILL_RANK = "kill -9 a training rank"
    FILL_DISK = "fill the disk"
    DAMAGE_SHARD = "damage a shard"
    DAMAGE_CHECKPOINT = "damage the newest checkpoint"


DECK = {
    Kind.KILL_WORKER: 4,
    Kind.FREEZE_WORKER: 3,
    Kind.KILL_CAMPAIGN: 2,
    Kind.INTERRUPT_CAMPAIGN: 1,
    Kind.TERMINATE_CAMPAIGN: 1,
    Kind.KILL_PREFECT: 1,
    Kind.KILL_MLFLOW: 2,
    Kind.FILL_DISK: 2,
    Kind.DAMAGE_SHARD: 2,
    Kind.DAMAGE_CHECKPOINT: 2,
}
"""How often each kind is in the deck of every campaign."""

DECK_OF_RANKS = {Kind.KILL_RANK: 6}
"""Added where the campaign trains in ranks."""

HOLDS_S = {
    Kind.FREEZE_WORKER: (1.0, 60.0),
    Kind.KILL_MLFLOW: (3.0, 20.0),
    Kind.FILL_DISK: (2.0, 10.0),
}
"""Shortest and longest time until the soak itself undoes a fault of this kind. Dask gives a silent
worker up after 30 s, so that a frozen one comes back in time or is replaced."""

DAMAGE = frozenset({Kind.DAMAGE_SHARD, Kind.DAMAGE_CHECKPOINT})
STOPS = frozenset({Kind.INTERRUPT_CAMPAIGN, Kind.TERMINATE_CAMPAIGN})


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault to come."""

    kind: Kind
    wait_s: float
    """Seconds of a campaign at work before it."""
    hold_s: float
    """Seconds until it is undone; 0 where the campaign has to live with it."""
    target: float
    """In [0, 1): which of those there are."""
    detail: float
    """In [0, 1): which file of it, or how much."""
    place: float
    """In [0, 1): where in the file, and whether it is flipped or cut."""
    is_between_runs: bool
    """Whether it waits until the campaign does not run; damage alone may."""


def planned_faults(seed: int, campaign: int, in_ranks: bool) -> Iterator[PlannedFault]:
    """The endless sequence for one campaign of a soak with this seed."""
    cards = DECK | (DECK_OF_RANKS if in_ranks else {})
    for number in count():
        draw = random.Random(derive_seed(seed, "soak", campaign, number))
        deck = [kind for kind, copies in cards.items() for _ in range(copies)]
        draw.shuffle(deck)
        for kind in deck:
            yield _planned(kind, draw)


def _planned(kind: Kind, draw: random.Random) -> PlannedFault:
    wait_s = SHORTEST_WAIT_S + draw.expovariate(1 / (MEAN_WAIT_S - SHORTEST_WAIT_S))
    shortest, longest = HOLDS_S.get(kind, (0.0, 0.0))
    return PlannedFault(
        kind=kind,
        wait_s=min(LONGEST_WAIT_S, wait_s),
        hold_s=draw.uniform(shortest, longest),
        target=draw.random(),
        detail=draw.random(),
        place=draw.random(),
        is_between_runs=draw.random() < 0.5 and kind in DAMAGE,
    )
