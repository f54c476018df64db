"""A ladder of players of known strength, and others who climb it; all by the model's formula."""

import numpy as np
from simulated_games import chances

from benchmarks.ladder import ladder_json, ladder_pairings
from chess_snn.evaluation.ladder.ladder import Ladder, PairResults

COLOUR, DRAWS = 30.0, 0.3


def play_pairs(elo_a, elo_b, num_pairs, stream):
    """int64[3, 3]: openings by a's outcome with white and with black."""
    white = chances(elo_a, elo_b, COLOUR, DRAWS)
    black = chances(elo_b, elo_a, COLOUR, DRAWS)[::-1]
    drawn = stream.multinomial(num_pairs, np.outer(white, black).ravel())
    return drawn.reshape(3, 3)


def pair_results(name_a, elo_a, name_b, elo_b, num_pairs, stream):
    return PairResults(name_a, name_b, play_pairs(elo_a, elo_b, num_pairs, stream))


def simulated_ladder(elos, num_pairs, stream):
    """A round-robin between the players ``elos``: names to ratings, the weakest first."""
    pairings = [
        {"player_a": a, "player_b": b, "pairs": play_pairs(elos[a], elos[b], num_pairs, stream)}
        for a, b in ladder_pairings(list(elos))
    ]
    return Ladder.from_json(ladder_json(pairings, {}, max_plies=200, origin={}))
