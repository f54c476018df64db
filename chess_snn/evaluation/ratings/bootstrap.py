"""What other samples of openings would have given.

The bootstrap of Efron 1979, "Bootstrap methods: another look at the jackknife", Annals of
Statistics 7, over openings: all games of a pairing from one opening are drawn together, and every
pairing keeps its number of openings. Of n openings n - 1 are drawn and weighted n / (n - 1), which
makes the variance of a mean unbiased however few they are (Rao & Wu 1988, "Resampling inference
with complex survey data", JASA 83, section 2). A single opening has no spread to draw from: it
counts twice or not at all.
"""

import numpy as np

from chess_snn.evaluation.ratings.crosstable import Crosstable
from chess_snn.rng import generator
from chess_snn.types import Float64Array, Int64Array


def resampled_totals(table: Crosstable, num_resamples: int, seed: int) -> Float64Array:
    """Games of resampled tables.

    A pairing's draws depend on ``seed``, its players' names and its own results alone, not on what
    else is in the table.

    Returns:
        float64[num_resamples, K, 2, 3]: weighted games by colour and white's outcome.
    """
    totals = np.empty((num_resamples, len(table.pairings), *table.results.shape[1:]))
    for pairing, (first, second) in enumerate(table.pairings):
        stream = generator(seed, "bootstrap", table.players[first], table.players[second])
        rows = table.pairing_of == pairing
        weights = _weights(table.num_openings[rows], num_resamples, stream)
        totals[:, pairing] = np.tensordot(weights, table.results[rows], axes=1)
    return totals


def _weights(
    num_openings: Int64Array, num_resamples: int, stream: np.random.Generator
) -> Float64Array:
    """float64[R, U]: how often each result of a pairing counts, 1 opening's worth on average."""
    total = num_openings.sum()
    if total == 1:
        return np.where(stream.integers(0, 2, size=(num_resamples, 1)) == 1, 2.0, 0.0)
    drawn = stream.multinomial(total - 1, num_openings / total, size=num_resamples)
    weights: Float64Array = drawn * (total / (total - 1))
    return weights
