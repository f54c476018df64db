"""How trees begin and grow: new nodes, their priors, and values on their way back to the root.

These kernels know trees, and rows of a :class:`chess_snn.games.base.GameBatch`; they know no game.

Dimensions: G games, B rows that the network answered, L columns of its logits.
"""

from typing import Final

import numpy as np

from chess_snn.games.base import NO_ACTION
from chess_snn.jit import kernel
from chess_snn.search.trees import NO_NODE, Trees
from chess_snn.types import Float32Array, Int16Array, Int32Array, UInt8Array, UInt64Array

_WON: Final = np.float32(1)
_OTHERWISE: Final = np.float32(1e-6)
"""What is left of the prior of actions beside one that wins at once."""


@kernel
def plant(
    trees: Trees, states: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array,
    logits: Float32Array, values_stm: Float32Array,
) -> None:
    """Begin the first trees with the roots ``states`` uint64[G, W], which the network answered."""
    for g in range(len(states)):
        trees.nodes_used[g] = 1
        trees.edges_used[g] = 0
        trees.state[g, 0] = states[g]
        trees.reward[g, 0] = 0.0
        trees.value[g, 0] = values_stm[g]
        _add_edges(trees, g, 0, legal_actions[g], num_legal[g])
        _write_priors(trees, g, 0, logits[g])


@kernel
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


@kernel
def narrow(wins: Int16Array, legal_actions: Int16Array, num_legal: Int32Array) -> None:
    """Leave of the first G lists the actions ``wins`` int16[G] alone, where there are any."""
    for g in range(len(wins)):
        if wins[g] != NO_ACTION:
            legal_actions[g, 0] = wins[g]
            num_legal[g] = 1


@kernel
def grow(
    trees: Trees, leaves: Int32Array, is_new: UInt8Array, states: UInt64Array,
    legal_actions: Int16Array, num_legal: Int32Array, rewards: Float32Array, wins: Int16Array,
    answers: Int32Array, logits: Float32Array, values_stm: Float32Array,
    discount: float, sign: float,
) -> None:
    """Complete the new leaves of a wave and back up the value of every leaf.

    Args:
        trees: the first G change.
        leaves: int32[G], the node each descent ended at.
        is_new: uint8[G], 1 where it was added by this descent.
        states: uint64[G, W], with the three that follow: the positions of new leaves.
        legal_actions: int16[G, M].
        num_legal: int32[G].
        rewards: float32[G], for the player who moved there.
        wins: int16[G], the one action of a list that was narrowed to it, else ``NO_ACTION``.
        answers: int32[G], which row of the network's answer belongs to the leaf, if any does.
        logits: float32[B, L].
        values_stm: float32[B].
        discount: of a value one ply later.
        sign: from a child's value to its parent's view, +1 or -1.
    """
    for g in range(len(wins)):
        leaf = leaves[g]
        if is_new[g]:
            trees.state[g, leaf] = states[g]
            trees.reward[g, leaf] = rewards[g]
            trees.value[g, leaf] = 0.0
            _add_edges(trees, g, leaf, legal_actions[g], num_legal[g])
            if wins[g] != NO_ACTION:
                trees.value[g, leaf] = _WON
                trees.prior[g, trees.first_edge[g, leaf]] = _WON
            elif num_legal[g] > 0:
                trees.value[g, leaf] = values_stm[answers[g]]
                _write_priors(trees, g, leaf, logits[answers[g]])
        _back_up(trees, g, leaf, discount * sign)


@kernel
def _add_edges(trees: Trees, g: int, node: int, legal: Int16Array, num_legal: int) -> None:
    first = trees.edges_used[g]
    trees.first_edge[g, node] = first
    trees.num_edges[g, node] = num_legal
    trees.edges_used[g] = first + num_legal
    for j in range(num_legal):
        trees.action[g, first + j] = legal[j]
        trees.visits[g, first + j] = 0
        trees.value_sum[g, first + j] = 0.0
        trees.child[g, first + j] = NO_NODE


@kernel
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


@kernel
def _back_up(trees: Trees, g: int, leaf: int, factor: float) -> None:
    """Add the leaf's value to every edge above it; ``factor`` turns a node's into its parent's."""
    node = leaf
    value = trees.value[g, leaf]
    while node > 0:
        value = np.float32(trees.reward[g, node] + factor * value)
        edge = trees.parent_edge[g, node]
        trees.visits[g, edge] += 1
        trees.value_sum[g, edge] += value
        node = trees.parent[g, node]
