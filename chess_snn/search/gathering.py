"""Several leaves of one tree for one call of the network.

Each descent but the last of a wave leaves a *virtual loss* on its path, a visit that lost, so that
the next one looks elsewhere; all are taken back before the leaves' values are backed up (Chaslot,
Winands & van den Herik 2008, §3.3). A wave of one leaf is a wave of
:class:`chess_snn.search.tree_search.TreeSearch`, to the bit.

Dimensions: L leaves at most, K history length, B rows that the network answered.
"""

from chess_snn.jit import kernel
from chess_snn.search.descent import Rule, descend
from chess_snn.search.growth import grow
from chess_snn.search.trees import Trees
from chess_snn.types import Float32Array, Int16Array, Int32Array, UInt8Array, UInt64Array


@kernel
def gather(
    trees: Trees, rule: Rule, root_edges: Int32Array,
    root_history: UInt64Array, root_plies: Int32Array, history_word: int,
    states: UInt64Array, history: UInt64Array, plies: Int32Array, termination: UInt8Array,
    actions: Int16Array, leaves: Int32Array, is_new: UInt8Array, wanted: int,
) -> int:
    """Descend the one tree of ``trees`` until ``wanted`` leaves are found or one is met twice.

    The arguments are those of :func:`chess_snn.search.descent.descend`; row k of each array with L
    rows is filled by descent k.

    Returns:
        How many rows to settle, at least 1.
    """
    first_pending = trees.nodes_used[0]
    for k in range(wanted):
        row = slice(k, k + 1)
        descend(
            trees, rule, root_edges, root_history, root_plies, history_word,
            states[row], history[row], plies[row], termination[row], actions[row], leaves[row],
            is_new[row],
        )
        if is_new[k] > 0:
            # So that a later descent of the wave stops here.
            trees.num_edges[0, leaves[k]] = 0
        elif leaves[k] >= first_pending:
            _add_losses(trees, leaves[k - 1], -1)
            return k
        if k + 1 < wanted:
            _add_losses(trees, leaves[k], 1)
    return wanted


@kernel
def settle(
    trees: Trees, leaves: Int32Array, is_new: UInt8Array, states: UInt64Array,
    legal_actions: Int16Array, num_legal: Int32Array, events: Float32Array, rewards: Float32Array,
    wins: Int16Array, answers: Int32Array, logits: Float32Array, values_stm: Float32Array,
    discount: float, sign: float,
) -> None:
    """Take the virtual losses back, then complete the leaves of the wave and back them up.

    The arguments are those of :func:`chess_snn.search.growth.grow`, a row a leaf.
    """
    count = len(wins)
    for k in range(count - 1):
        _add_losses(trees, leaves[k], -1)
    for k in range(count):
        row = slice(k, k + 1)
        grow(
            trees, leaves[row], is_new[row], states[row], legal_actions[row], num_legal[row],
            events[row], rewards[row], wins[row], answers[row], logits, values_stm,
            discount, sign,
        )


@kernel
def _add_losses(trees: Trees, leaf: int, count: int) -> None:
    node = leaf
    while node > 0:
        edge = trees.parent_edge[0, node]
        trees.visits[0, edge] += count
        trees.value_sum[0, edge] -= count
        node = trees.parent[0, node]
