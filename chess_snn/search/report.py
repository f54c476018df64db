"""What a search found at one root, for people to read.

Dimensions: n legal actions of the root.
"""

from dataclasses import dataclass

import numpy as np

from chess_snn.search.trees import NO_NODE, Trees, is_chance_node
from chess_snn.types import Float32Array, Int16Array, Int32Array


@dataclass(frozen=True, slots=True)
class RootReport:
    """One root after its search; columns in the order of the position's legal list."""

    actions: Int16Array
    """int16[n]."""
    visits: Int32Array
    """int32[n]: they sum to the simulations."""
    priors: Float32Array
    """float32[n]: the network's policy; with PUCT's noise where there was any."""
    q_stm: Float32Array
    """float32[n]: mean value of each action, root's side to move; NaN without visits."""
    target: Float32Array
    """float32[n]: the policy that the search recommends."""
    value_stm: float
    """Of the position, after the search."""
    network_value_stm: float
    """Of the position, before it."""
    principal_variation: tuple[int, ...]
    """Actions: the most visited one of each node from the root on, the first one the search's
    choice. Of chance events, which are left out, the line follows the most visited too."""


def report_root(
    trees: Trees, g: int, action: int, value_stm: float, target: Float32Array
) -> RootReport:
    """Read tree ``g``, whose search chose ``action``."""
    first, count = int(trees.first_edge[g, 0]), int(trees.num_edges[g, 0])
    edges = slice(first, first + count)
    visits = trees.visits[g, edges].copy()
    with np.errstate(invalid="ignore"):
        q_stm = (trees.value_sum[g, edges] / visits).astype(np.float32)
    return RootReport(
        actions=trees.action[g, edges].copy(),
        visits=visits,
        priors=trees.prior[g, edges].copy(),
        q_stm=q_stm,
        target=target[:count].copy(),
        value_stm=value_stm,
        network_value_stm=float(trees.value[g, 0]),
        principal_variation=_principal_variation(trees, g, action),
    )


def _principal_variation(trees: Trees, g: int, action: int) -> tuple[int, ...]:
    line = [action]
    first, count = int(trees.first_edge[g, 0]), int(trees.num_edges[g, 0])
    edge = first + int(np.flatnonzero(trees.action[g, first : first + count] == action)[0])
    while (node := int(trees.child[g, edge])) != NO_NODE:
        first, count = int(trees.first_edge[g, node]), int(trees.num_edges[g, node])
        visits = trees.visits[g, first : first + count]
        if not visits.any():
            break
        edge = first + int(visits.argmax())
        if not is_chance_node(trees.is_chance, g, node):
            line.append(int(trees.action[g, edge]))
    return tuple(line)
