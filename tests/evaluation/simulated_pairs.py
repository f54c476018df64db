"""Pairs of games between players of known strength, and how often intervals hold the truth.

    python tests/evaluation/simulated_pairs.py      # the table of docs/ratings.md, a minute

Dimensions: the last one is the 5 pair scores.
"""

import numpy as np
from simulated_games import chances

from chess_snn.evaluation.scores import PAIR_SCORES, elo_difference, pair_interval

SCORES = (0.5, 0.6, 0.75, 0.9, 0.97, 0.995)
KINDS = {
    "decisive": (0.02, 0), "common": (0.3, 0), "drawish": (0.8, 0), "nearly all drawn": (0.96, 0),
    "one-sided openings": (0.3, 400), "decisive, one-sided openings": (0.02, 400),
}
"""Draw rates of equal players, and Elo points by which an opening favours one side."""
LEAST_DIFFERENT = 20
"""Pairs expected to have another score than the most frequent one, for an interval to be narrow."""


def pair_chances(elo, draw_rate, opening_edge):
    """Chances of the five pair scores of a player whose mean score is worth ``elo``.

    Half of the openings favour white by ``opening_edge`` points, half of them black.
    """
    low, high = -4000.0, 4000.0
    for _ in range(60):
        strength = (low + high) / 2
        pairs = np.mean([
            np.convolve(chances(strength, 0, edge, draw_rate)[::-1],
                        chances(strength, 0, -edge, draw_rate)[::-1])
            for edge in (opening_edge, -opening_edge)
        ], axis=0)
        too_low = elo_difference(min(1.0, pairs @ PAIR_SCORES)) < elo
        low, high = (strength, high) if too_low else (low, strength)
    return pairs


def never_losing_chances(score):
    """Chances of a player who wins or draws, as strong ones without search do."""
    return np.convolve([0, 2 - 2 * score, 2 * score - 1], [0, 2 - 2 * score, 2 * score - 1])


def worlds():
    """Chances of the five pair scores, by kind and mean score."""
    found = {
        (kind, score): pair_chances(elo_difference(score), *facts)
        for kind, facts in KINDS.items() for score in SCORES
    }
    found |= {("never losing", score): never_losing_chances(score) for score in SCORES[1:]}
    # Openings that the same player wins with both colours.
    return found | {("dependent games", 0.75): np.array([0.18, 0.08, 0.1, 0.04, 0.6])}


def coverage(chances_of_pairs, num_pairs, num_matches, stream):
    """(share of matches whose interval holds the true score, mean width of the intervals)."""
    drawn = stream.multinomial(num_pairs, chances_of_pairs, size=num_matches)
    counts, frequency = np.unique(drawn, axis=0, return_counts=True)
    low, high = pair_interval(counts)
    true_score = chances_of_pairs @ PAIR_SCORES
    holds = (low <= true_score + 1e-12) & (true_score - 1e-12 <= high)
    return holds @ frequency / num_matches, (high - low) @ frequency / num_matches


def is_measurable(chances_of_pairs, num_pairs):
    """Whether enough pairs differ for the coverage to be near 95 %, rather than above."""
    return num_pairs * (1 - chances_of_pairs.max()) >= LEAST_DIFFERENT


def main():
    stream = np.random.default_rng(20)
    print("| pairs | lowest coverage | mean | highest, many differ | mean width |")
    print("| --- | --- | --- | --- | --- |")
    for num_pairs in (10, 16, 20, 32, 50, 100, 200, 400):
        rows = [
            (*coverage(chance, num_pairs, 10_000, stream), is_measurable(chance, num_pairs))
            for chance in worlds().values()
        ]
        covered, widths, narrow = (np.array(column) for column in zip(*rows, strict=True))
        highest = f"{covered[narrow].max():.1%}" if narrow.any() else ""
        print(f"| {num_pairs} | {covered.min():.1%} | {covered.mean():.1%} | {highest} "
              f"| {widths.mean():.3f} |")


if __name__ == "__main__":
    main()
