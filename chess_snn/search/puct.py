"""PUCT at the root: Dirichlet noise on the prior, visits as the target, the action drawn from them.

Silver et al. 2017, Methods, *Search algorithm*.

Dimensions: G games, M columns for legal actions.
"""

import numpy as np

from chess_snn.jit import kernel, lean_kernel
from chess_snn.rng import random_unit, random_word
from chess_snn.search.descent import RULE_CHOOSES
from chess_snn.search.trees import Trees, edge_value_sum, edge_visits
from chess_snn.types import Float32Array, Int16Array, Int32Array, UInt64Array

_ONE = np.uint64(1)
_NOISE_STREAM, _ACTION_STREAM = np.uint64(1), np.uint64(2)
"""Sub-streams of a ply."""
_TWO_PI = 2 * np.pi


class PuctRoot:
    """The root of every tree of a batch, for one search."""

    def __init__(self, noise_alpha: float, noise_share: float) -> None:
        self._alpha, self._share = noise_alpha, noise_share
        self._streams = np.empty(0, np.uint64)
        self._temperatures = np.empty(0, np.float32)

    def begin(
        self, trees: Trees, keys: UInt64Array, plies: Int32Array, temperatures: Float32Array
    ) -> None:
        """Mix noise into the roots' priors, except where the temperature is 0."""
        self._streams = np.empty(len(keys), np.uint64)
        self._temperatures = temperatures
        mix_noise(trees, keys, plies, temperatures, self._streams, self._alpha, self._share)

    @property
    def most_at_once(self) -> int:
        """One: each simulation depends on all before it."""
        return 1

    def choose_edges(
        self, trees: Trees, simulations: Int32Array, rows: Int32Array, edges: Int32Array
    ) -> int:
        """The root is not an exception: the rule below it chooses."""
        del trees
        count = len(simulations)
        rows[:count], edges[:count] = np.arange(count), RULE_CHOOSES
        simulations += 1
        return count

    def finish(
        self, trees: Trees, actions: Int16Array, values_stm: Float32Array, targets: Float32Array
    ) -> None:
        """Write actions int16[G], root values float32[G] and policy targets float32[G, M]."""
        conclude(trees, self._streams, self._temperatures, actions, values_stm, targets)


@kernel
def mix_noise(
    trees: Trees, keys: UInt64Array, plies: Int32Array, temperatures: Float32Array,
    streams: UInt64Array, alpha: float, share: float,
) -> None:
    """Prior = (1 - share) prior + share Dirichlet(alpha); ``streams`` uint64[G]: one a ply."""
    for g in range(len(keys)):
        streams[g] = random_word(keys[g], np.uint64(plies[g]))
        if temperatures[g] <= 0 or share <= 0:
            continue
        first, count = trees.first_edge[g, 0], trees.num_edges[g, 0]
        noise = np.empty(count)
        for j in range(count):
            own = random_word(random_word(streams[g], _NOISE_STREAM), np.uint64(j))
            noise[j] = draw_gamma(own, alpha)
        total = noise.sum()
        if total <= 0:  # all of them underflowed: alpha is tiny
            continue
        for j in range(count):
            kept = (1 - share) * trees.prior[g, first + j]
            trees.prior[g, first + j] = np.float32(kept + share * noise[j] / total)


@lean_kernel
def conclude(
    trees: Trees, streams: UInt64Array, temperatures: Float32Array, actions: Int16Array,
    values_stm: Float32Array, targets: Float32Array,
) -> None:
    """Target: visits. Action: drawn from them. Value: the mean of all simulations."""
    for g in range(len(actions)):
        first, count = trees.first_edge[g, 0], trees.num_edges[g, 0]
        total, value = 0, float(trees.value[g, 0])
        for edge in range(first, first + count):
            total += edge_visits(trees, g, edge)
            value += float(edge_value_sum(trees, g, edge))
        for j in range(count):
            targets[g, j] = np.float32(edge_visits(trees, g, first + j) / total)
        targets[g, count:] = 0.0
        values_stm[g] = np.float32(value / (1 + total))
        draws = random_word(streams[g], _ACTION_STREAM)
        actions[g] = trees.action[g, _draw_edge(trees, g, draws, temperatures[g])]


@lean_kernel
def _draw_edge(trees: Trees, g: int, draws: np.uint64, temperature: float) -> int:
    """Draw from visits ** (1 / temperature) by the Gumbel-max trick; ties go by the prior."""
    first = trees.first_edge[g, 0]
    best, best_score, best_prior = int(first), -np.inf, np.float32(-1)
    for j in range(trees.num_edges[g, 0]):
        edge = first + j
        visits, prior = edge_visits(trees, g, edge), trees.prior[g, edge]
        if visits == 0:
            continue
        score = np.log(float(visits))
        if temperature > 0:
            score = score / temperature - np.log(-np.log(random_unit(draws, np.uint64(j))))
        if score > best_score or (score == best_score and prior > best_prior):
            best, best_score, best_prior = edge, score, prior
    return best


@lean_kernel
def draw_gamma(key: np.uint64, alpha: float) -> float:
    """A draw from Gamma(alpha, 1) by Marsaglia & Tsang 2000, with their boost for alpha below 1."""
    counter = np.uint64(0)
    boost = 1.0
    shape = alpha
    if shape < 1:
        boost = random_unit(key, counter) ** (1 / shape)
        counter += _ONE
        shape += 1
    d = shape - 1 / 3
    c = 1 / np.sqrt(9 * d)
    while True:
        radius = np.sqrt(-2 * np.log(random_unit(key, counter)))
        normal = radius * np.cos(_TWO_PI * random_unit(key, counter + _ONE))
        uniform = random_unit(key, counter + _ONE + _ONE)
        counter += _ONE + _ONE + _ONE
        v = (1 + c * normal) ** 3
        if v > 0 and np.log(uniform) < 0.5 * normal * normal + d * (1 - v + np.log(v)):
            return float(boost * d * v)
