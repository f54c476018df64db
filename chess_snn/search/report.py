"""Report of a search at one root: values, proofs, and the best lines.

A node is won as soon as one action leads to a lost one, and lost once all of them lead to won ones
(Winands, Björnsson & Saito 2008, §3.1). For games of two players who take turns.

Dimensions: N nodes, n legal actions of the root.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from chess_snn.jit import lean_kernel
from chess_snn.search.trees import NO_NODE, Trees, is_chance_node, visits_and_sums
from chess_snn.types import Float32Array, Int16Array, Int32Array

UNPROVED: Final = 0
_LOST_NOW: Final = -1


@dataclass(frozen=True, slots=True)
class RootReport:
    """One root after its search; columns in the order of the position's legal list."""

    actions: Int16Array
    """int16[n]."""
    visits: Int32Array
    """int32[n]: they sum to the simulations, or less where few actions are legal."""
    priors: Float32Array
    """float32[n]: the network's policy; with PUCT's noise where there was any."""
    q_stm: Float32Array
    """float32[n]: mean value of each action, root's side to move; NaN without visits."""
    target: Float32Array
    """float32[n]: the policy that the search recommends."""
    value_stm: float
    """Value of the position, after the search."""
    network_value_stm: float
    """Value of the position, before it."""
    principal_variation: tuple[int, ...]
    """Actions: the most visited one of each node from the root on, the first one the search's
    choice. Of chance events, which are left out, the line follows the most visited too."""


def report_root(
    trees: Trees, g: int, action: int, value_stm: float, target: Float32Array
) -> RootReport:
    """Read tree ``g``, whose search chose ``action``."""
    first, count = int(trees.first_edge[g, 0]), int(trees.num_edges[g, 0])
    edges = slice(first, first + count)
    visits, sums = visits_and_sums(trees, g, edges)
    with np.errstate(invalid="ignore"):
        q_stm = (sums / visits).astype(np.float32)
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
        visits, _ = visits_and_sums(trees, g, slice(first, first + count))
        if not visits.any():
            break
        edge = first + int(visits.argmax())
        if not is_chance_node(trees.is_chance, g, node):
            line.append(int(trees.action[g, edge]))
    return tuple(line)


@lean_kernel
def prove(
    trees: Trees, proofs: Int32Array, heights: Int32Array, refuted: Int32Array, slowest: Int32Array
) -> None:
    """Fill ``proofs`` and ``heights`` int32[N] for every node of the one tree.

    A proof is p + 1 where the side to move wins in p plies at best, -(p + 1) where it loses after
    p plies at most, else ``UNPROVED``; a height is how many plies the tree goes on below the node.
    ``refuted`` and ``slowest`` int32[N] are scratch.
    """
    used = trees.nodes_used[0]
    proofs[:used] = UNPROVED
    heights[:used] = 0
    refuted[:used] = 0
    slowest[:used] = 0
    # Children come behind their parents: each node is complete when its turn comes.
    for node in range(used - 1, -1, -1):
        count = trees.num_edges[0, node]
        if count == 0:
            if trees.reward[0, node] > 0:
                proofs[node] = _LOST_NOW
        elif proofs[node] == UNPROVED and refuted[node] == count:
            proofs[node] = -slowest[node]
        if node == 0:
            break
        parent, proof = trees.parent[0, node], proofs[node]
        heights[parent] = max(heights[parent], heights[node] + 1)
        if proof < 0:
            win = np.int32(1 - proof)
            if proofs[parent] == UNPROVED or win < proofs[parent]:
                proofs[parent] = win
        elif proof > 0:
            refuted[parent] += 1
            slowest[parent] = max(slowest[parent], proof + 1)


@dataclass(frozen=True, slots=True)
class Line:
    """An action of the root, seen by the side to move there."""

    actions: tuple[int, ...]
    """The action, and then the best one of each node that follows; never empty."""
    visits: int
    prior: float
    value_stm: float
    """Return the mean of the visits in [-1, 1]; without visits the network's value of the root."""
    win_plies: int
    """Plies to a proved end of the game: positive where the side to move wins with the action,
    negative where it loses with it; 0 where nothing is proved."""


def best_lines(
    trees: Trees, proofs: Int32Array, count: int | None, *, by_value: bool
) -> list[Line]:
    """The ``count`` best lines of the one tree, or all of them, best first.

    Proved wins come first, the fastest before others; proved losses last, the slowest before
    others; what lies between by visits, then value, then prior.

    Args:
        trees: one tree, between waves.
        proofs: int32[N], of :func:`prove`.
        count: most lines; None: one for every action of the root.
        by_value: at the root, half of the most visits are as good as all of them.
    """
    edges, enough = _edges(trees, 0), math.inf
    if by_value:
        enough = max(_visits_and_sum(trees, edge)[0] for edge in edges) / 2
    ranked = sorted(edges, key=lambda edge: _rank(trees, proofs, edge, enough), reverse=True)
    return [_line(trees, proofs, edge) for edge in ranked[:count]]


def _line(trees: Trees, proofs: Int32Array, edge: int) -> Line:
    visits, value_sum = _visits_and_sum(trees, edge)
    value = value_sum / visits if visits else trees.value[0, 0]
    return Line(
        actions=tuple(_variation(trees, proofs, edge)),
        visits=visits,
        prior=float(trees.prior[0, edge]),
        value_stm=float(value),
        win_plies=_win_plies(trees, proofs, edge),
    )


def _variation(trees: Trees, proofs: Int32Array, edge: int) -> list[int]:
    actions = [int(trees.action[0, edge])]
    while (node := int(trees.child[0, edge])) != NO_NODE and trees.num_edges[0, node] > 0:
        edge = max(_edges(trees, node), key=lambda edge: _rank(trees, proofs, edge))
        if trees.child[0, edge] == NO_NODE:
            break
        actions.append(int(trees.action[0, edge]))
    return actions


def _edges(trees: Trees, node: int) -> range:
    first = int(trees.first_edge[0, node])
    return range(first, first + int(trees.num_edges[0, node]))


def _rank(
    trees: Trees, proofs: Int32Array, edge: int, enough: float = math.inf
) -> tuple[int, float, float, float]:
    """More than ``enough`` visits count no more than as many."""
    plies = _win_plies(trees, proofs, edge)
    if plies != 0:
        return (1 if plies > 0 else -1, -float(plies), 0.0, 0.0)
    visits, value_sum = _visits_and_sum(trees, edge)
    value = float(value_sum) / visits if visits else 0.0
    return (0, min(visits, enough), value, float(trees.prior[0, edge]))


def _visits_and_sum(trees: Trees, edge: int) -> tuple[int, np.float32]:
    child = int(trees.child[0, edge])
    if child == NO_NODE:
        return 0, np.float32(0)
    return int(trees.visits[0, child]), np.float32(trees.value_sum[0, child])


def _win_plies(trees: Trees, proofs: Int32Array, edge: int) -> int:
    """Return ``Line.win_plies`` of an edge: its player wins where the child is lost."""
    child = int(trees.child[0, edge])
    return UNPROVED if child == NO_NODE else -int(proofs[child])
