"""The lines of a growing tree: its best actions, each with what should follow."""

from dataclasses import dataclass

from chess_snn.search.proof import UNPROVED
from chess_snn.search.trees import NO_NODE, Trees
from chess_snn.types import Int32Array


@dataclass(frozen=True, slots=True)
class Line:
    """An action of the root, seen by the side to move there."""

    actions: tuple[int, ...]
    """The action, and then the best one of each node that follows; never empty."""
    visits: int
    prior: float
    value_stm: float
    """In [-1, 1]: the mean of the visits; without visits the network's value of the root."""
    win_plies: int
    """Plies to a proved end of the game: positive where the side to move wins with the action,
    negative where it loses with it; 0 where nothing is proved."""


def best_lines(trees: Trees, proofs: Int32Array, count: int | None) -> list[Line]:
    """The ``count`` best lines of the one tree, or all of them, best first.

    Proved wins come first, the fastest before others; proved losses last, the slowest before
    others; what lies between by visits, then value, then prior.

    Args:
        trees: one tree, between waves.
        proofs: int32[N], of :func:`chess_snn.search.proof.prove`.
        count: most lines; None: one for every action of the root.
    """
    ranked = sorted(_edges(trees, 0), key=lambda edge: _rank(trees, proofs, edge), reverse=True)
    return [_line(trees, proofs, edge) for edge in ranked[:count]]


def _line(trees: Trees, proofs: Int32Array, edge: int) -> Line:
    visits = int(trees.visits[0, edge])
    value = trees.value_sum[0, edge] / visits if visits else trees.value[0, 0]
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
        if trees.visits[0, edge] == 0:
            break
        actions.append(int(trees.action[0, edge]))
    return actions


def _edges(trees: Trees, node: int) -> range:
    first = int(trees.first_edge[0, node])
    return range(first, first + int(trees.num_edges[0, node]))


def _rank(trees: Trees, proofs: Int32Array, edge: int) -> tuple[int, float, float, float]:
    plies = _win_plies(trees, proofs, edge)
    if plies != 0:
        return (1 if plies > 0 else -1, -float(plies), 0.0, 0.0)
    visits = int(trees.visits[0, edge])
    value = float(trees.value_sum[0, edge]) / visits if visits else 0.0
    return (0, float(visits), value, float(trees.prior[0, edge]))


def _win_plies(trees: Trees, proofs: Int32Array, edge: int) -> int:
    """Of an edge, as ``Line.win_plies``: its player wins where the child is lost."""
    child = int(trees.child[0, edge])
    return UNPROVED if child == NO_NODE else -int(proofs[child])
