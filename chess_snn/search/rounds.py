"""Sequential halving at the root of a tree that grows for as long as there is time.

:mod:`chess_snn.search.gumbel` halves once, and has to know its number of simulations beforehand.
Here halving follows halving in rounds, as in anytime sequential halving (Sagers et al. 2024,
arXiv 2411.07171), and each round has as many simulations as all before it together. So it begins
with as many actions as a search of its size considers, and what was learnt decides which.

Dimensions: E edges of the root, S of them that still take part, n of them in turn.
"""

from math import isqrt
from typing import Final

import numpy as np

from chess_snn.search.descent import LEAST_PRIOR, Rule, complete_values
from chess_snn.search.trees import Trees, visits_and_sums
from chess_snn.types import Float32Array, Int32Array

_FIRST_ROUND: Final = 16
"""Simulations; of 4 actions the better 2 then have 6 visits each, the others 2."""


class Rounds:
    """Choice of the root's edges for the next descents of the one tree."""

    def __init__(self, rule: Rule) -> None:
        """``rule`` says how much values count beside priors."""
        self._rule = rule
        self.begin()

    def begin(self) -> None:
        """Forget the rounds of another root."""
        self._edges: Int32Array = np.empty(0, np.int32)
        self._begun = self._simulations = self._share = 0

    def next_edges(self, trees: Trees, most: int) -> Int32Array:
        """int32[n]: the edges of the next descents, from 1 to ``most``, none past a halving."""
        visits, _ = visits_and_sums(trees, 0, slice(int(trees.num_edges[0, 0])))
        visits_so_far = int(visits.sum())
        if visits_so_far >= self._begun + self._simulations:
            self._halve(trees, visits_so_far)
        first = visits_so_far - self._begun
        turns = np.arange(first, min(first + most, self._simulations))
        return self._edges[turns % len(self._edges)]

    def _halve(self, trees: Trees, visits_so_far: int) -> None:
        """Leave the better half; of two, or none, begin a round with the best of all."""
        scores = root_scores(trees, self._rule)
        if len(self._edges) > 2:
            candidates, wanted = self._edges, max(2, len(self._edges) // 2)
        else:
            candidates = np.arange(len(scores), dtype=np.int32)
            simulations = max(_FIRST_ROUND, visits_so_far)
            wanted = min(isqrt(simulations), len(scores))
            self._share = simulations // max(1, (wanted - 1).bit_length())
        best = np.argsort(-scores[candidates], kind="stable")[:wanted]
        self._edges = candidates[best]
        self._begun, self._simulations = visits_so_far, wanted * max(1, self._share // wanted)


def root_scores(trees: Trees, rule: Rule) -> Float32Array:
    """float32[E]: logits of the improved policy at the root (Danihelka et al. 2022, §4)."""
    edges = slice(0, int(trees.num_edges[0, 0]))
    visits, sums = visits_and_sums(trees, 0, edges)
    values = complete_values(trees, rule, 0, 0)
    means = np.where(visits > 0, sums / np.maximum(visits, 1), values.mixed)
    logits = np.log(np.maximum(trees.prior[0, edges], LEAST_PRIOR))
    scores: Float32Array = (logits + values.factor * means).astype(np.float32)
    return scores
