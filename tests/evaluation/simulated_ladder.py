"""A ladder of players of known strength, and others who climb it; all by the model's formula."""

import numpy as np
from simulated_games import chances

from benchmarks.ladder import ladder_pairings
from chess_snn.evaluation.ladder.ladder import Ladder, PairResults

COLOUR, DRAWS = 30.0, 0.3


def play_pairs(elo_a, elo_b, num_pairs, stream):
    """int64[3, 3]: openings by a's outcome with white and with black."""
    white = chances(elo_a, elo_b, COLOUR, DRAWS)
    black = chances(elo_b, elo_a, COLOUR, DRAWS)[::-1]
    drawn = stream.multinomial(num_pairs, np.outer(white, black).ravel())
    return drawn.reshape(3, 3)


def pair_results(name_a, elo_a, name_b, elo_b, num_pairs, stream):
    return PairResults(name_a, name_b, play_pairs(elo_a, elo_b, num_pairs, stream), 0, 0)


def simulated_results(elos, num_pairs, stream):
    """A round-robin between the players ``elos``: names to ratings, the weakest first."""
    return [
        pair_results(a, elos[a], b, elos[b], num_pairs, stream)
        for a, b in ladder_pairings(list(elos))
    ]


def simulated_ladder(elos, num_pairs, stream, max_plies=200):
    return Ladder.of_results(
        simulated_results(elos, num_pairs, stream), {}, max_plies=max_plies,
        origin={"date": "2026-01-31T00:00:00+00:00", "command": "simulated", "seed": 0,
                "version": "0"},
    )
