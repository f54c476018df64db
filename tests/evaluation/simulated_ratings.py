"""Players of known strength, and how often the intervals of their ratings hold the truth.

Every pairing plays each opening with both colours. *One luck* means that white is as lucky in both
games of an opening, which so depend on each other as much as they can.
"""

from dataclasses import dataclass

import numpy as np
from simulated_games import simulated_table

from chess_snn.evaluation.ratings.fit import fit_ratings


@dataclass(frozen=True)
class Case:
    """A tournament: each of ``elos`` meets the ``span`` next ones from ``openings`` openings."""

    elos: tuple[int, ...]
    openings: int
    span: int
    one_luck: bool = False
    draw_rate: float = 0.3


CASES = (
    Case((0, 150, 300, 500, 600, 900), 40, 2),
    Case((0, 200, 400, 550), 12, 3),
    Case((0, 300, 600), 50, 1),
    Case((0, 150, 300, 500), 20, 2, one_luck=True),
    Case((0, 150, 300, 500), 40, 2, draw_rate=0.8),
    Case((0, 150, 300, 500), 40, 2, draw_rate=0.02),
    Case((0, 200, 400), 5, 2),
    Case((0, 100), 3, 1),
    Case((0, 600, 900, 1000), 10, 2),
    Case((0, 700), 20, 1),
    Case((0, 1000), 40, 1),
)


@dataclass(frozen=True)
class Figures:
    """Over all repetitions and players but the anchor."""

    coverage: float
    lowest: float
    """Lowest of the coverages of single players."""
    shared: float
    """Coverage of the colour advantage and the draw rate together."""


def simulate(case, repetitions, seed=12):
    """The figures of ``case``."""
    stream = np.random.default_rng(seed)
    inside, shared = [], []
    for _ in range(repetitions):
        table = simulated_table(
            case.elos, case.openings, stream=stream, span=case.span,
            draw_rate=case.draw_rate, one_luck=case.one_luck,
        )
        ratings = fit_ratings(table, "p0")
        for number, truth in enumerate(case.elos[1:], 1):
            elo = ratings.of(f"p{number}").elo
            inside.append(elo.low <= truth <= elo.high)
        for found, truth in ((ratings.colour_advantage, 30.0), (ratings.draw_rate, case.draw_rate)):
            shared.append(found.low <= truth <= found.high)
    by_player = np.reshape(inside, (repetitions, -1)).mean(axis=0)
    return Figures(by_player.mean(), by_player.min(), np.mean(shared))
