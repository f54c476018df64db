"""Gumbel AlphaZero at the root: simulations by sequential halving, a target from completed values.

Danihelka et al. 2022, §2 to §4.

Sampling without replacement by Gumbel noise makes the played action at least as good, in
expectation, as one drawn from the policy, from two simulations on; the target is the policy
improved by completed values, not the visit counts.

Sequential halving (Karnin, Koren & Somekh 2013, algorithm 1, as Danihelka et al. 2022, algorithm 2,
use it) is a table: which visit count the next simulation goes to. All considered actions get equal
visits, then the better half of them, and so on down to two.

Dimensions: G games, E edges a game, M columns for legal actions.
"""

from functools import lru_cache

import numpy as np

from chess_snn.jit import lean_kernel
from chess_snn.rng import random_unit, random_word
from chess_snn.search.descent import (
    LEAST_PRIOR,
    Rule,
    complete_values,
    q_factor,
    unvisited_weight,
    visited_weight,
)
from chess_snn.search.trees import NO_NODE, Trees
from chess_snn.types import Float32Array, Int16Array, Int32Array, UInt64Array


class GumbelRoot:
    """The root of every tree of a batch, for one search."""

    def __init__(
        self, rule: Rule, considered_actions: int, simulations: int, num_games: int, max_legal: int
    ) -> None:
        self._rule = rule
        self._plan = halving_table(considered_actions, simulations)
        self._scores = np.empty((num_games, max_legal), np.float32)

    def begin(
        self, trees: Trees, keys: UInt64Array, plies: Int32Array, temperatures: Float32Array
    ) -> None:
        """Draw the noise of this search: Gumbel times the temperature, added to the logits."""
        draw_scores(trees, keys, plies, temperatures, self._scores)

    def choose_edges(self, trees: Trees, simulation: int, edges: Int32Array) -> None:
        """The root edge of each game, int32[G], for ``simulation`` counted from 0."""
        choose_root_edges(trees, self._rule, self._scores, self._plan, simulation, edges)

    def finish(
        self, trees: Trees, actions: Int16Array, values_stm: Float32Array, targets: Float32Array
    ) -> None:
        """Write actions int16[G], root values float32[G] and policy targets float32[G, M]."""
        conclude(trees, self._rule, self._scores, actions, values_stm, targets)


@lean_kernel
def draw_scores(
    trees: Trees, keys: UInt64Array, plies: Int32Array, temperatures: Float32Array,
    scores: Float32Array,
) -> None:
    """Fill ``scores`` float32[G, M]: log prior of each root edge, plus temperature times Gumbel."""
    for g in range(len(keys)):
        stream = random_word(keys[g], np.uint64(plies[g]))
        first = trees.first_edge[g, 0]
        for j in range(trees.num_edges[g, 0]):
            score = np.log(max(trees.prior[g, first + j], LEAST_PRIOR))
            if temperatures[g] > 0:
                noise = -np.log(-np.log(random_unit(stream, np.uint64(j))))
                score += np.float32(temperatures[g] * noise)
            scores[g, j] = score


@lean_kernel
def choose_root_edges(
    trees: Trees, rule: Rule, scores: Float32Array, plan: Int32Array, simulation: int,
    edges: Int32Array,
) -> None:
    """Of the edges with the planned number of visits, the one with the best score and value."""
    most_considered = len(plan) - 1
    for g in range(len(edges)):
        count = trees.num_edges[g, 0]
        wanted = plan[min(count, most_considered), simulation]
        edges[g] = _best_edge_with(trees, rule, scores, g, wanted)


@lean_kernel
def conclude(
    trees: Trees, rule: Rule, scores: Float32Array, actions: Int16Array,
    values_stm: Float32Array, targets: Float32Array,
) -> None:
    """Action: the best of the most visited. Target: the improved policy. Value: its mean."""
    for g in range(len(actions)):
        first, count = trees.first_edge[g, 0], trees.num_edges[g, 0]
        most = _most_visits(trees, g)
        actions[g] = trees.action[g, _best_edge_with(trees, rule, scores, g, most)]
        values = complete_values(trees, rule, g, 0)
        total, value = np.float32(0), np.float32(0)
        for j in range(count):
            child, prior = trees.child[g, first + j], trees.prior[g, first + j]
            if child == NO_NODE:
                weight, mean = unvisited_weight(prior, values), values.mixed
            else:
                mean = trees.value_sum[g, child] / np.float32(trees.visits[g, child])
                weight = visited_weight(prior, mean, values)
            targets[g, j] = weight
            total += weight
            value += weight * mean
        for j in range(count):
            targets[g, j] /= total
        targets[g, count:] = 0.0
        values_stm[g] = value / total


@lean_kernel
def _most_visits(trees: Trees, g: int) -> int:
    """Of the most visited root edge."""
    first, most = trees.first_edge[g, 0], 0
    for edge in range(first, first + trees.num_edges[g, 0]):
        child = trees.child[g, edge]
        if child != NO_NODE:
            most = max(most, trees.visits[g, child])
    return most


@lean_kernel
def _best_edge_with(trees: Trees, rule: Rule, scores: Float32Array, g: int, wanted: int) -> int:
    """The root edge with ``wanted`` visits whose score plus scaled value is largest."""
    first = trees.first_edge[g, 0]
    factor = np.float32(0)
    if wanted > 0:
        factor = q_factor(rule, _most_visits(trees, g), trees.value_scale[g])
    best, best_score = -1, np.float32(-np.inf)
    for j in range(trees.num_edges[g, 0]):
        child, score = trees.child[g, first + j], scores[g, j]
        if child == NO_NODE:
            # Without visits all edges share one value, which decides nothing.
            if wanted > 0:
                continue
        elif trees.visits[g, child] != wanted:
            continue
        else:
            score += factor * trees.value_sum[g, child] / np.float32(wanted)
        if best < 0 or score > best_score:
            best, best_score = first + j, score
    return best


@lru_cache(maxsize=64)
def halving_table(most_considered: int, simulations: int) -> Int32Array:
    """int32[most_considered + 1, simulations]: row m is the plan for m considered actions.

    Entry t is the number of visits that an action must have had to be simulation t's choice; the
    best of those is taken. Row 0 is not used.
    """
    rows = [_plan(considered, simulations) for considered in range(most_considered + 1)]
    return np.array(rows, np.int32)


def _plan(considered: int, simulations: int) -> list[int]:
    if considered <= 1:
        return list(range(simulations))
    num_phases = (considered - 1).bit_length()
    plan: list[int] = []
    survivors, visits_so_far = considered, 0
    while len(plan) < simulations:
        rounds = max(1, simulations // (num_phases * survivors))
        for _ in range(rounds):
            plan += [visits_so_far] * survivors
            visits_so_far += 1
        survivors = max(2, survivors // 2)
    return plan[:simulations]
