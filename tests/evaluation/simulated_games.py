"""Games of players whose strength is known, drawn from the model by its formula."""

import math

import numpy as np

from chess_snn.evaluation.ratings.crosstable import Crosstable, RatedGame


def table_of(names, white, black, outcomes_white, openings):
    """The table of games given as columns; players by their places in ``names``."""
    return Crosstable.from_games(
        RatedGame(names[a], names[b], outcome, str(opening))
        for a, b, outcome, opening in zip(
            white.tolist(), black.tolist(), outcomes_white.tolist(), openings.tolist(), strict=True
        )
    )


def chances(elo_white, elo_black, colour_advantage, draw_rate):
    """White's (win, draw, loss) by Davidson's formula, in strengths rather than logarithms."""
    white = 10 ** ((elo_white + colour_advantage) / 400)
    black = 10 ** (elo_black / 400)
    draw = 2 * draw_rate / (1 - draw_rate) * math.sqrt(white * black)
    return np.array([white, draw, black]) / (white + draw + black)


def simulated_table(
    elos, num_openings, *, stream, colour_advantage=30.0, draw_rate=0.3, span=2, one_luck=False
):
    """Each player meets the ``span`` next ones from ``num_openings`` openings, both colours.

    The players are p0, p1, ... with ratings ``elos``. With ``one_luck`` white is as lucky in both
    games of an opening, which depend on each other as much as they can.
    """
    columns = []
    for a in range(len(elos)):
        for b in range(a + 1, min(len(elos), a + 1 + span)):
            luck = stream.random(num_openings) if one_luck else None
            for white, black in ((a, b), (b, a)):
                odds = chances(elos[white], elos[black], colour_advantage, draw_rate)
                outcomes = 1 - (
                    stream.choice(3, size=num_openings, p=odds) if luck is None
                    else np.searchsorted(np.cumsum(odds)[:2], luck)
                )
                seats = np.tile([[white], [black]], num_openings)
                columns.append(np.stack([*seats, outcomes, np.arange(num_openings)]))
    names = [f"p{number}" for number in range(len(elos))]
    return table_of(names, *np.concatenate(columns, axis=1))
