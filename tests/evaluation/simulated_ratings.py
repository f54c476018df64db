"""Players of known strength, and how often the intervals of their ratings hold the truth.

    python tests/evaluation/simulated_ratings.py      # the table of decision 29, some minutes

Every pairing plays each opening with both colours. *One luck* means that white is as lucky in both
games of an opening, which so depend on each other as much as they can.
"""

import sys
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

    def __str__(self):
        luck = ", one luck" if self.one_luck else ""
        draws = f", {self.draw_rate:.0%} draws" if self.draw_rate != 0.3 else ""
        return f"{' '.join(map(str, self.elos))}, {self.openings} openings{luck}{draws}"


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

    bias: float
    """Mean of rating less truth, in points, where the rating is finite."""
    rmse: float
    coverage: float
    lowest: float
    """Of the coverages of single players."""
    shared: float
    """Coverage of the colour advantage and the draw rate together."""
    open_ends: float
    """Share of intervals with an infinite end."""
    width: float
    """Median, in points, of the others."""


def simulate(case, repetitions, seed=12):
    """The figures of ``case``."""
    stream = np.random.default_rng(seed)
    errors, inside, widths, shared = [], [], [], []
    for _ in range(repetitions):
        table = simulated_table(
            case.elos, case.openings, stream=stream, span=case.span,
            draw_rate=case.draw_rate, one_luck=case.one_luck,
        )
        ratings = fit_ratings(table, "p0")
        for number, truth in enumerate(case.elos[1:], 1):
            elo = ratings.of(f"p{number}").elo
            errors.append(elo.value - truth)
            inside.append(elo.low <= truth <= elo.high)
            widths.append(elo.high - elo.low)
        for found, truth in ((ratings.colour_advantage, 30.0), (ratings.draw_rate, case.draw_rate)):
            shared.append(found.low <= truth <= found.high)
    errors, widths = np.array(errors), np.array(widths)
    errors, is_bounded = errors[np.isfinite(errors)], np.isfinite(widths)
    by_player = np.reshape(inside, (repetitions, -1)).mean(axis=0)
    return Figures(
        bias=errors.mean() if len(errors) else np.nan,
        rmse=np.sqrt((errors**2).mean()) if len(errors) else np.nan,
        coverage=by_player.mean(), lowest=by_player.min(), shared=np.mean(shared),
        open_ends=1.0 - is_bounded.mean(),
        width=np.median(widths[is_bounded]) if is_bounded.any() else np.nan,
    )


if __name__ == "__main__":
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print("| players and openings | bias | root of mean square | coverage | lowest | colour, draws "
          "| open | width |")
    print("| --- " * 8 + "|")
    for case in CASES:
        row = simulate(case, repetitions)
        print(f"| {case} | {row.bias:+.0f} | {row.rmse:.0f} | {row.coverage:.1%} | "
              f"{row.lowest:.1%} | {row.shared:.1%} | {row.open_ends:.0%} | {row.width:.0f} |",
              flush=True)
