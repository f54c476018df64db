"""Kernels that begin, grow and re-root trees.

New nodes get priors, and values go back to the root. When a game goes on, the subtree of the action
that was played becomes the tree. These kernels know trees, and rows of a
:class:`chess_snn.games.base.GameBatch`; they know no game.

Dimensions: G games, N nodes, L descents of a wave, B rows that the network answered, C columns of
its logits.
"""

from typing import Final

import numpy as np

from chess_snn.games.base import NO_ACTION
from chess_snn.jit import copy_row, int64, lean_kernel
from chess_snn.rng import random_word
from chess_snn.search.trees import NO_NODE, Trees, equal_rows, is_chance_node
from chess_snn.types import (
    BoolArray,
    Float32Array,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)

_WON: Final = np.float32(1)
_OTHERWISE: Final = np.float32(1e-6)
"""Share of their prior that actions keep beside one that wins at once."""
_LEAST_SPREAD: Final = np.float32(0.01)
"""Values closer than this share of their size are not stretched to the whole scale, so that noise
does not decide where all actions are worth the same."""


@lean_kernel
def plant(
    trees: Trees, rows: Int64Array, states: UInt64Array, legal_actions: Int16Array,
    num_legal: Int32Array, logits: Float32Array, values_stm: Float32Array,
) -> None:
    """Begin the trees ``rows`` int64[B] anew at their positions.

    Args:
        trees: the first G are those of the positions; the rest of them does not change.
        rows: which; row b of the network's answer belongs to ``rows[b]``.
        states: uint64[G, W], with the two that follow: the positions.
        legal_actions: int16[G, M].
        num_legal: int32[G].
        logits: float32[B, C].
        values_stm: float32[B].
    """
    for b in range(len(rows)):
        g = rows[b]
        trees.nodes_used[g] = 1
        trees.edges_used[g] = 0
        copy_row(states[g], trees.state[g, 0])
        trees.reward[g, 0] = 0.0
        trees.value[g, 0] = values_stm[b]
        if trees.is_chance.shape[1] > 0:
            trees.is_chance[g, 0] = 0
        if trees.value_bounds.shape[1] > 0:
            trees.value_bounds[g] = values_stm[b]
            trees.value_scale[g] = 1.0
        _add_edges(trees, g, int64(0), legal_actions[g], num_legal[g])
        _write_priors(trees, g, int64(0), logits[b])


@lean_kernel
def favour(trees: Trees, wins: Int16Array) -> None:
    """Give the actions ``wins`` int16[G] of the roots all but all of the prior."""
    for g in range(len(wins)):
        if wins[g] != NO_ACTION:
            first = trees.first_edge[g, 0]
            for edge in range(first, first + trees.num_edges[g, 0]):
                if trees.action[g, edge] == wins[g]:
                    trees.prior[g, edge] = _WON
                else:
                    trees.prior[g, edge] *= _OTHERWISE


@lean_kernel
def narrow(wins: Int16Array, legal_actions: Int16Array, num_legal: Int32Array) -> None:
    """Leave of the first G lists the actions ``wins`` int16[G] alone, where there are any."""
    for g in range(len(wins)):
        if wins[g] != NO_ACTION:
            legal_actions[g, 0] = wins[g]
            num_legal[g] = 1


@lean_kernel
def grow(
    trees: Trees, rows: Int32Array, leaves: Int32Array, is_new: UInt8Array, states: UInt64Array,
    legal_actions: Int16Array, num_legal: Int32Array, events: Float32Array, rewards: Float32Array,
    wins: Int16Array, answers: Int32Array, logits: Float32Array, values_stm: Float32Array,
    discount: float, sign: float,
) -> None:
    """Complete the new leaves of a wave and back up the value of every leaf.

    Args:
        trees: those of ``rows`` change.
        rows: int32[L], the tree of each descent.
        leaves: int32[L], the node each descent ended at.
        is_new: uint8[L], 1 where it was added by this descent.
        states: uint64[L, W], with the three that follow: the positions of new leaves.
        legal_actions: int16[L, M].
        num_legal: int32[L].
        events: float32[L, M], probabilities of the listed actions where they are chance events,
            else 0; float32[L, 0] in a game without chance events.
        rewards: float32[L], for the player who moved there.
        wins: int16[L], the one action of a list that was narrowed to it, else ``NO_ACTION``.
        answers: int32[L], which row of the network's answer belongs to the leaf, if any does.
        logits: float32[B, C].
        values_stm: float32[B].
        discount: of a value one ply later; a chance event takes no time.
        sign: from a value after a ply to the view of who made it, +1 or -1.
    """
    for k in range(len(wins)):
        g, leaf = int64(rows[k]), int64(leaves[k])
        if is_new[k]:
            copy_row(states[k], trees.state[g, leaf])
            trees.reward[g, leaf] = rewards[k]
            trees.value[g, leaf] = 0.0
            if trees.is_chance.shape[1] > 0:
                trees.is_chance[g, leaf] = events[k, 0] > 0
            _add_edges(trees, g, leaf, legal_actions[k], num_legal[k])
            if wins[k] != NO_ACTION:
                trees.value[g, leaf] = _WON
                trees.prior[g, trees.first_edge[g, leaf]] = _WON
            elif num_legal[k] > 0:
                trees.value[g, leaf] = values_stm[answers[k]]
                if is_chance_node(trees.is_chance, g, leaf):
                    _write_events(trees, g, leaf, legal_actions[k], events[k])
                else:
                    _write_priors(trees, g, leaf, logits[answers[k]])
        _back_up(trees, g, leaf, discount * sign)
        if trees.value_bounds.shape[1] > 0:
            _rescale(trees, g)


@lean_kernel
def _add_edges(trees: Trees, g: int, node: int, legal: Int16Array, num_legal: int) -> None:
    first = trees.edges_used[g]
    trees.first_edge[g, node] = first
    trees.num_edges[g, node] = num_legal
    trees.edges_used[g] = first + num_legal
    for j in range(num_legal):
        trees.action[g, first + j] = legal[j]
        trees.child[g, first + j] = NO_NODE


@lean_kernel
def _write_priors(trees: Trees, g: int, node: int, logits: Float32Array) -> None:
    """Softmax of the legal logits."""
    first, count = trees.first_edge[g, node], trees.num_edges[g, node]
    peak = np.float32(-np.inf)
    for j in range(count):
        peak = max(peak, logits[j])
    total = np.float32(0)
    for j in range(count):
        weight = np.exp(logits[j] - peak)
        trees.prior[g, first + j] = weight
        total += weight
    for j in range(count):
        trees.prior[g, first + j] /= total


@lean_kernel
def _write_events(
    trees: Trees, g: int, node: int, events: Int16Array, probabilities: Float32Array
) -> None:
    """Enter the events of a chance node from a place in their list on that its position decides.

    Of equal events the first is taken: in the order of the list, a search too short for all of them
    would see events of the board's first squares only.
    """
    first, count = trees.first_edge[g, node], trees.num_edges[g, node]
    word = np.uint64(0)
    for column in range(trees.state.shape[2]):
        word = random_word(word, trees.state[g, node, column])
    start = int(word % np.uint64(count))
    for j in range(count):
        listed = (start + j) % count
        trees.action[g, first + j] = events[listed]
        trees.prior[g, first + j] = probabilities[listed]


@lean_kernel
def _back_up(trees: Trees, g: int, leaf: int, factor: float) -> None:
    """Add the leaf's value to every edge above it; ``factor`` is that of a value after a ply."""
    node = leaf
    value = trees.value[g, leaf]
    while node > 0:
        parent = int64(trees.parent[g, node])
        is_event = is_chance_node(trees.is_chance, g, parent)
        if not is_event:
            value = np.float32(trees.reward[g, node] + factor * value)
        trees.visits[g, node] += 1
        trees.value_sum[g, node] += value
        if trees.value_bounds.shape[1] > 0 and not is_event:
            mean = trees.value_sum[g, node] / np.float32(trees.visits[g, node])
            trees.value_bounds[g, 0] = min(trees.value_bounds[g, 0], mean)
            trees.value_bounds[g, 1] = max(trees.value_bounds[g, 1], mean)
        node = parent


@lean_kernel
def _rescale(trees: Trees, g: int) -> None:
    """The scale in which the values seen lie at most 1 apart."""
    lowest, highest = trees.value_bounds[g, 0], trees.value_bounds[g, 1]
    size = max(abs(lowest), abs(highest))
    spread = max(highest - lowest, _LEAST_SPREAD * size)
    trees.value_scale[g] = np.float32(1) / spread if spread > 0 else np.float32(1)


@lean_kernel
def follow(
    trees: Trees, sources: Int32Array, states: UInt64Array, num_legal: Int32Array, most_nodes: int,
    numbers: Int32Array, shifts: Int32Array, is_kept: BoolArray,
) -> None:
    """Go on with the trees of games in which a move was played and answered.

    Args:
        trees: tree g becomes what tree ``sources[g]`` knows of the position after both moves.
        sources: int32[G], the tree of each game until now, at least g and increasing; -1 where
            there is none.
        states: uint64[G, W], the positions reached.
        num_legal: int32[G], of their actions. A node whose actions were narrowed does not go on.
        most_nodes: the largest tree to go on with.
        numbers: as in :func:`reroot`, like the next.
        shifts: int32[N].
        is_kept: bool[G], filled: where tree g goes on. Where not, it must be planted.
    """
    for g in range(len(sources)):
        is_kept[g] = False
        source = sources[g]
        if source < 0:
            continue
        node = _find_reply(trees, source, states[g])
        if node != NO_NODE and trees.num_edges[source, node] == num_legal[g]:
            reroot(trees, source, node, g, numbers, shifts)
            is_kept[g] = trees.nodes_used[g] <= most_nodes


@lean_kernel
def _find_reply(trees: Trees, g: int, state: UInt64Array) -> int:
    """The node two plies below the root that has ``state``, or ``NO_NODE``."""
    for node in range(1, trees.nodes_used[g]):
        parent = trees.parent[g, node]
        is_reply = parent != 0 and trees.parent[g, parent] == 0
        if is_reply and equal_rows(trees.state[g, node], state):
            return node
    return NO_NODE


@lean_kernel
def reroot(
    trees: Trees, source: int, new_root: int, target: int, numbers: Int32Array, shifts: Int32Array
) -> None:
    """Make what is below node ``new_root`` of tree ``source`` the tree ``target``; forget the rest.

    Nodes move to the front in their order, and edges with them. Every node comes behind its parent
    and its edges behind those of earlier nodes, before and after; so nothing is overwritten that is
    still to be read, also where both trees are the same one.

    Args:
        trees: of a game of wins, changed in place.
        source: the tree to read.
        new_root: one of its nodes, which has edges.
        target: the tree to write.
        numbers: int32[N], scratch: the new number of each node, ``NO_NODE`` where it is forgotten.
        shifts: int32[N], scratch: how far the edges of each new node moved.
    """
    nodes, edges = 0, 0
    for node in range(trees.nodes_used[source]):
        numbers[node] = NO_NODE
        parent = NO_NODE
        if node > new_root:
            parent = numbers[trees.parent[source, node]]
        if node != new_root and parent == NO_NODE:
            continue
        number = nodes
        nodes += 1
        numbers[node] = number
        first, count = trees.first_edge[source, node], trees.num_edges[source, node]
        shifts[number] = edges - first
        if parent != NO_NODE:
            parent_edge = trees.parent_edge[source, node] + shifts[parent]
            trees.parent[target, number] = parent
            trees.parent_edge[target, number] = parent_edge
            trees.child[target, parent_edge] = number
        copy_row(trees.state[source, node], trees.state[target, number])
        trees.value[target, number] = trees.value[source, node]
        trees.reward[target, number] = trees.reward[source, node]
        trees.visits[target, number] = trees.visits[source, node]
        trees.value_sum[target, number] = trees.value_sum[source, node]
        trees.first_edge[target, number] = edges
        trees.num_edges[target, number] = count
        for edge in range(first, first + count):
            trees.action[target, edges] = trees.action[source, edge]
            trees.prior[target, edges] = trees.prior[source, edge]
            # A child comes later, and enters itself then.
            trees.child[target, edges] = NO_NODE
            edges += 1
    trees.nodes_used[target] = nodes
    trees.edges_used[target] = edges
