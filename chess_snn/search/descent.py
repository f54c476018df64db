"""One descent of every tree: from the root along chosen edges to a leaf that is new or has ended.

Below the root an edge is chosen by one of two rules, both without noise:

``GUMBEL_RULE``
    the edge whose share of the visits lags most behind the improved policy (Danihelka et al. 2022,
    §5 and eq. 14);
``PUCT_RULE``
    the edge with the largest sum of value and prior bonus (Silver et al. 2017, Methods, *Search
    algorithm*), an edge without visits taking its parent's value less a reduction.

At a chance node both take the event whose visits lag most behind its probability, the largest
probability / (visits + 1), as Stochastic MuZero does (Antonoglou et al. 2022, §4): visits meet the
probabilities as closely as whole numbers can, and nothing is drawn.

Dimensions: G games, L descents, K history length.
"""

from typing import Final, NamedTuple

import numpy as np

from chess_snn.jit import copy_row, int64, lean_kernel
from chess_snn.search.trees import NO_NODE, Trees, is_chance_node
from chess_snn.types import Int16Array, Int32Array, UInt8Array, UInt64Array

GUMBEL_RULE: Final = 0
PUCT_RULE: Final = 1
RULE_CHOOSES: Final = -1
"""Instead of a root edge: the rule below the root chooses at the root too."""

VISIT_OFFSET: Final = 50.0
"""c_visit of Danihelka et al. 2022, added to the largest visit count."""
UNVISITED_REDUCTION: Final = np.float32(0.25)
"""How much worse than its parent ``PUCT_RULE`` takes an edge without visits to be, times the square
root of the prior already visited."""
LEAST_PRIOR: Final = np.float32(1e-30)
"""Instead of priors below it, so that every legal action can still be weighed and its log taken."""


class Rule(NamedTuple):
    """Rule that chooses edges, as numbers that kernels can read."""

    kind: int
    q_scale: float
    exploration: float


class CompletedValues(NamedTuple):
    """Values of the edges of one node, and their weight in the policy."""

    factor: np.float32
    """See :func:`q_factor`."""
    mixed: np.float32
    """Value of every edge without visits: the network's and those of the visited edges, weighted by
    their priors (Danihelka et al. 2022, eq. 33)."""
    best: np.float32
    """The largest value of an edge."""
    unvisited_gain: np.float32
    """Factor of the prior of an edge without visits, in [0, 1]."""


@lean_kernel
def descend(
    trees: Trees, rule: Rule, rows: Int32Array, root_edges: Int32Array,
    root_history: UInt64Array, root_plies: Int32Array, history_word: int,
    states: UInt64Array, history: UInt64Array, history_rows: Int32Array, plies: Int32Array,
    termination: UInt8Array, actions: Int16Array, leaves: Int32Array, is_new: UInt8Array,
) -> None:
    """Walk down L trees and set the leaves' parents up for a step of the game.

    Args:
        trees: gains a node, not yet filled, where a descent met an edge without a child.
        rule: for edges below the root.
        rows: int32[L], the tree of each descent. None meets the new leaf of an earlier one.
        root_edges: int32[L], the edge to take at the root, or ``RULE_CHOOSES``.
        root_history: uint64[G, K] of the root positions.
        root_plies: int32[G], likewise.
        history_word: see :class:`chess_snn.games.base.GameSpec`.
        states: uint64[L, W], filled with the position before the new leaf; with ``history``,
            ``plies`` and ``termination`` a scratch batch for
            :meth:`chess_snn.games.base.Game.step`.
        history: uint64[L, K]: that of a root, but for the plies behind it up to ``plies``, where
            the last descent was.
        history_rows: int32[L]: which root's; -1 of none yet.
        plies: int32[L].
        termination: uint8[L], set to ongoing.
        actions: int16[L], the action to the new leaf; -1 where the leaf is not new.
        leaves: int32[L], the leaf.
        is_new: uint8[L].
    """
    length = root_history.shape[1]
    for k in range(len(root_edges)):
        g, node = int64(rows[k]), int64(0)
        ply = root_plies[g]
        if history_rows[k] != g:
            copy_row(root_history[g], history[k])
            history_rows[k] = g
        elif length > 0:
            for later in range(ply + 1, plies[k] + 1):
                history[k, later % length] = root_history[g, later % length]
        edge = root_edges[k]
        if edge == RULE_CHOOSES:
            edge = _choose_edge(trees, rule, g, node)
        while True:
            child = trees.child[g, edge]
            if child == NO_NODE:
                break
            if not is_chance_node(trees.is_chance, g, node):
                ply += 1
            node = int64(child)
            if length > 0:
                history[k, ply % length] = trees.state[g, node, history_word]
            if trees.num_edges[g, node] == 0:
                break
            edge = _choose_edge(trees, rule, g, node)
        is_new[k] = child == NO_NODE
        leaves[k] = node
        actions[k] = -1
        plies[k] = ply
        if is_new[k]:
            leaf = trees.nodes_used[g]
            trees.nodes_used[g] = leaf + 1
            trees.child[g, edge] = leaf
            trees.parent[g, leaf] = node
            trees.parent_edge[g, leaf] = edge
            trees.visits[g, leaf] = 0
            trees.value_sum[g, leaf] = 0.0
            leaves[k] = leaf
            actions[k] = trees.action[g, edge]
            copy_row(trees.state[g, node], states[k])
            termination[k] = 0


@lean_kernel
def complete_values(trees: Trees, rule: Rule, g: int, node: int) -> CompletedValues:
    """The completed values of a node's edges, of which there is one at least."""
    first, count = trees.first_edge[g, node], trees.num_edges[g, node]
    num_visited, visits, most = 0, 0, 0
    prior_sum, weighted, best = np.float32(0), np.float32(0), np.float32(-np.inf)
    for edge in range(first, first + count):
        child = trees.child[g, edge]
        if child != NO_NODE:
            child_visits = trees.visits[g, child]
            num_visited += 1
            visits += child_visits
            most = max(most, child_visits)
            q = trees.value_sum[g, child] / np.float32(child_visits)
            prior_sum += trees.prior[g, edge]
            weighted += trees.prior[g, edge] * q
            best = max(best, q)
    mixed: np.float32 = trees.value[g, node]
    if prior_sum > np.float32(0):
        mixed = (mixed + np.float32(visits) * weighted / prior_sum) / np.float32(1 + visits)
    factor, unvisited_gain = q_factor(rule, most, trees.value_scale[g]), np.float32(0)
    if num_visited < count:
        best = max(best, mixed)
        unvisited_gain = np.exp(factor * (mixed - best))
    return CompletedValues(factor, mixed, best, unvisited_gain)


@lean_kernel
def q_factor(rule: Rule, most_visits: int, value_scale: np.float32) -> np.float32:
    """Return the factor of values before they join logits, by the visits of the most visited.

    Sigma of Danihelka et al. 2022, eq. 8, of values in the tree's scale.
    """
    return np.float32((VISIT_OFFSET + most_visits) * rule.q_scale) * value_scale


@lean_kernel
def visited_weight(prior: np.float32, value: np.float32, values: CompletedValues) -> np.float32:
    """Share of an edge in the improved policy (§4 of the same paper), before normalisation.

    The softmax of logits and scaled values; as these are counted from the best one, nothing
    overflows, and the weights of a node add up to ``LEAST_PRIOR`` at least. ``value`` is the mean
    of the edge's visits.

    Takes numbers, for a call that takes trees costs more than it does.
    """
    weight: np.float32 = max(prior, LEAST_PRIOR)
    weight *= np.exp(values.factor * (value - values.best))
    return weight


@lean_kernel
def unvisited_weight(prior: np.float32, values: CompletedValues) -> np.float32:
    """Return the :func:`visited_weight` of an edge without visits."""
    weight: np.float32 = max(prior, LEAST_PRIOR)
    weight *= values.unvisited_gain
    return weight


@lean_kernel
def _choose_edge(trees: Trees, rule: Rule, g: int, node: int) -> int:
    if is_chance_node(trees.is_chance, g, node):
        return _choose_event(trees, g, node)
    if rule.kind == PUCT_RULE:
        return _choose_by_puct(trees, rule, g, node)
    return _choose_by_improved_policy(trees, rule, g, node)


@lean_kernel
def _choose_event(trees: Trees, g: int, node: int) -> int:
    first = trees.first_edge[g, node]
    best, best_quota = int(first), np.float32(-np.inf)
    for edge in range(first, first + trees.num_edges[g, node]):
        child, visits = trees.child[g, edge], 0
        if child != NO_NODE:
            visits = trees.visits[g, child]
        quota = trees.prior[g, edge] / np.float32(1 + visits)
        if quota > best_quota:
            best, best_quota = edge, quota
    return best


@lean_kernel
def _choose_by_improved_policy(trees: Trees, rule: Rule, g: int, node: int) -> int:
    first = trees.first_edge[g, node]
    last = first + trees.num_edges[g, node]
    values = complete_values(trees, rule, g, node)
    total, visits = np.float32(0), 0
    for edge in range(first, last):
        child, prior = trees.child[g, edge], trees.prior[g, edge]
        if child == NO_NODE:
            total += unvisited_weight(prior, values)
        else:
            child_visits = trees.visits[g, child]
            value = trees.value_sum[g, child] / np.float32(child_visits)
            total += visited_weight(prior, value, values)
            visits += child_visits
    share_a_visit = np.float32(1) / np.float32(1 + visits)
    best, best_lag = int(first), np.float32(-np.inf)
    heaviest = np.float32(-np.inf)
    for edge in range(first, last):
        child, prior = trees.child[g, edge], trees.prior[g, edge]
        if child == NO_NODE:
            weight = unvisited_weight(prior, values)
            # No farther behind than an earlier edge that is as heavy.
            if weight <= heaviest:
                continue
            heaviest = weight
            lag = weight / total
        else:
            child_visits = trees.visits[g, child]
            value = trees.value_sum[g, child] / np.float32(child_visits)
            share = visited_weight(prior, value, values) / total
            lag = share - np.float32(child_visits) * share_a_visit
        if lag > best_lag:
            best, best_lag = edge, lag
    return best


@lean_kernel
def _choose_by_puct(trees: Trees, rule: Rule, g: int, node: int) -> int:
    first = trees.first_edge[g, node]
    last = first + trees.num_edges[g, node]
    visits = 0
    value_sum, visited_prior = trees.value[g, node], np.float32(0)
    for edge in range(first, last):
        child = trees.child[g, edge]
        if child != NO_NODE:
            visits += trees.visits[g, child]
            value_sum += trees.value_sum[g, child]
            visited_prior += trees.prior[g, edge]
    scale = trees.value_scale[g]
    value = scale * value_sum / np.float32(1 + visits)
    unvisited = value - UNVISITED_REDUCTION * np.sqrt(visited_prior)
    bonus = np.float32(rule.exploration) * np.sqrt(np.float32(1 + visits))
    best, best_score = int(first), np.float32(-np.inf)
    for edge in range(first, last):
        child, count, q = trees.child[g, edge], 0, unvisited
        if child != NO_NODE:
            count = trees.visits[g, child]
            q = scale * trees.value_sum[g, child] / np.float32(count)
        score = q + bonus * trees.prior[g, edge] / np.float32(1 + count)
        if score > best_score:
            best, best_score = edge, score
    return best
