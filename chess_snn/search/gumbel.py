"""Gumbel AlphaZero at the root: simulations by sequential halving, a target from completed values.

The search by default, at the root: which actions get the simulations, which one is played, and what
the network shall learn from it. File 6 of 16 of the spine in docs/architecture.md.

Danihelka et al. 2022, §2 to §4.

Sampling without replacement by Gumbel noise makes the played action at least as good, in
expectation, as one drawn from the policy, from two simulations on; the target is the policy
improved by completed values, not the visit counts: softmax(log prior + factor * value), where the
factor grows with the visits, and an action without visits has a value mixed of the network's and
the visited actions'.

Sequential halving (Karnin, Koren & Somekh 2013, algorithm 1, as Danihelka et al. 2022, algorithm 2,
use it) is a table: which visit count the next simulation goes to. All considered actions get equal
visits, then the better half of them, and so on down to two.

Simulations that go to one visit count are a *round*. They visit different actions, so that in a
game of wins none depends on another's result, and all are one wave. In other games the scale of
values changes with every result, and a wave is one simulation.

With few legal actions a round has few simulations, and the trees of a batch wait for whichever has
the most rounds. So in a game of wins a root with less than half of the considered actions has no
more rounds than those with half or more.

Dimensions: G games, C considered actions at most, L descents of a wave, M columns for legal
actions.
"""

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from chess_snn.jit import int64, lean_kernel
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

_NOTHING_LEFT: Final = -1
"""Entry of a table instead of a number of visits: the search of a root with few actions is over."""


class Candidates(NamedTuple):
    """The considered actions of each root, C at most, best score first.

    Each of the first simulations visits the next of them: the child of candidate k is node k + 1.
    """

    edges: Int32Array
    """int32[G, C]."""
    scores: Float32Array
    """float32[G, C]: log prior, plus temperature times Gumbel noise."""
    visits: Int32Array
    """int32[G, C]: those of the wave that was chosen last included."""


class GumbelRoot:
    """The root of every tree of a batch, for one search."""

    def __init__(
        self, rule: Rule, considered_actions: int, simulations: int, num_games: int,
        waves_are_rounds: bool,
    ) -> None:
        self._rule = rule
        self._plan = halving_table(considered_actions, simulations, waves_are_rounds)
        self._candidates = Candidates(
            np.empty((num_games, considered_actions), np.int32),
            np.empty((num_games, considered_actions), np.float32),
            np.empty((num_games, considered_actions), np.int32),
        )

    def begin(
        self, trees: Trees, keys: UInt64Array, plies: Int32Array, temperatures: Float32Array
    ) -> None:
        """Draw the noise of this search: Gumbel times the temperature, added to the logits."""
        draw_candidates(trees, keys, plies, temperatures, self._candidates)

    @property
    def most_at_once(self) -> int:
        """Simulations of a round at most."""
        return int(self._candidates.edges.shape[1])

    def choose_edges(
        self, trees: Trees, simulations: Int32Array, rows: Int32Array, edges: Int32Array
    ) -> int:
        """Choose a round of each game; see :class:`chess_snn.search.tree_search.RootRule`."""
        return choose_root_edges(
            trees, self._rule, self._candidates, self._plan, simulations, rows, edges
        )

    def finish(
        self, trees: Trees, actions: Int16Array, values_stm: Float32Array, targets: Float32Array
    ) -> None:
        """Write actions int16[G], root values float32[G] and policy targets float32[G, M]."""
        conclude(trees, self._rule, self._candidates, actions, values_stm, targets)


@lean_kernel
def draw_candidates(
    trees: Trees, keys: UInt64Array, plies: Int32Array, temperatures: Float32Array,
    candidates: Candidates,
) -> None:
    """Fill ``candidates``; of equal scores the earlier edge comes first."""
    most = candidates.edges.shape[1]
    for g in range(len(keys)):
        edges, scores = candidates.edges[g], candidates.scores[g]
        candidates.visits[g] = 0
        stream = random_word(keys[g], np.uint64(plies[g]))
        first = trees.first_edge[g, 0]
        for j in range(trees.num_edges[g, 0]):
            score = np.log(max(trees.prior[g, first + j], LEAST_PRIOR))
            if temperatures[g] > 0:
                noise = -np.log(-np.log(random_unit(stream, np.uint64(j))))
                score += np.float32(temperatures[g] * noise)
            place = min(j, most)
            while place > 0 and scores[place - 1] < score:
                place -= 1
            for k in range(min(j, most - 1), place, -1):
                edges[k], scores[k] = edges[k - 1], scores[k - 1]
            if place < most:
                edges[place], scores[place] = first + j, score


@lean_kernel
def choose_root_edges(
    trees: Trees, rule: Rule, candidates: Candidates, plan: Int32Array, simulations: Int32Array,
    rows: Int32Array, edges: Int32Array,
) -> int:
    """Choose the candidates with the planned visits and the best scores and values.

    Without visits they are the next ones: all values are the same then, and decide nothing.
    """
    count = 0
    for g in range(len(simulations)):
        num_candidates = min(trees.num_edges[g, 0], candidates.edges.shape[1])
        t = simulations[g]
        while t < plan.shape[1]:
            wanted = int64(plan[num_candidates, t])
            best = t
            if wanted > 0:
                best = _best_with(trees, rule, candidates, g, num_candidates, wanted)
            candidates.visits[g, best] += 1
            rows[count], edges[count] = g, candidates.edges[g, best]
            count += 1
            t += 1
            is_round = t < plan.shape[1] and plan[num_candidates, t] == wanted
            if not is_round or trees.value_bounds.shape[1] > 0:
                break
        if t < plan.shape[1] and plan[num_candidates, t] == _NOTHING_LEFT:
            t = plan.shape[1]
        simulations[g] = t
    return count


@lean_kernel
def conclude(
    trees: Trees, rule: Rule, candidates: Candidates, actions: Int16Array,
    values_stm: Float32Array, targets: Float32Array,
) -> None:
    """Action: the best of the most visited. Target: the improved policy. Value: its mean."""
    for g in range(len(actions)):
        first, count = trees.first_edge[g, 0], trees.num_edges[g, 0]
        # A search that was stopped may not have come to all candidates.
        num_visited = min(count, candidates.edges.shape[1], trees.nodes_used[g] - 1)
        most = _most_visits(candidates, g, num_visited)
        best = _best_with(trees, rule, candidates, g, num_visited, most)
        actions[g] = trees.action[g, candidates.edges[g, best]]
        values = complete_values(trees, rule, g, int64(0))
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
def _most_visits(candidates: Candidates, g: int, num_visited: int) -> int:
    """Return the visits of the most visited of the first ``num_visited`` candidates."""
    most = 0
    for k in range(num_visited):
        most = max(most, candidates.visits[g, k])
    return most


@lean_kernel
def _best_with(
    trees: Trees, rule: Rule, candidates: Candidates, g: int, num_visited: int, wanted: int
) -> int:
    """Return the first candidate with ``wanted`` visits and the largest score plus value."""
    factor = q_factor(rule, _most_visits(candidates, g, num_visited), trees.value_scale[g])
    best, best_score = -1, np.float32(-np.inf)
    for k in range(num_visited):
        if candidates.visits[g, k] == wanted:
            score = candidates.scores[g, k]
            score += factor * trees.value_sum[g, k + 1] / np.float32(wanted)
            is_earlier = best < 0 or candidates.edges[g, k] < candidates.edges[g, best]
            if best < 0 or score > best_score or (score == best_score and is_earlier):
                best, best_score = k, score
    return best


@lru_cache(maxsize=64)
def halving_table(most_considered: int, simulations: int, waves_are_rounds: bool) -> Int32Array:
    """int32[most_considered + 1, simulations]: row m is the plan for m considered actions.

    Entry t is the number of visits that an action must have had to be simulation t's choice; the
    best of those is taken. It is ``_NOTHING_LEFT`` behind the last round. Row 0 is not used.
    """
    rows = [_plan(considered, simulations) for considered in range(most_considered + 1)]
    table = np.array(rows, np.int32)
    if not waves_are_rounds:
        return table
    most_visits = table[max(1, most_considered // 2):].max(initial=0)
    return np.where(table > most_visits, np.int32(_NOTHING_LEFT), table)


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
