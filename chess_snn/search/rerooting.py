"""A game goes on: the subtree of the action that was played becomes the tree.

Dimensions: N nodes.
"""

from chess_snn.jit import kernel
from chess_snn.search.trees import NO_NODE, Trees
from chess_snn.types import Int32Array


@kernel
def reroot(trees: Trees, root_edge: int, numbers: Int32Array, shifts: Int32Array) -> None:
    """Make the child of ``root_edge`` the root of the one tree; what is not below it is forgotten.

    Nodes move to the front in their order, and edges with them. Every node comes behind its parent
    and its edges behind those of earlier nodes, before and after; so nothing is overwritten that is
    still to be read.

    Args:
        trees: changed in place; ``root_edge`` has a child, which has edges.
        root_edge: an edge of the root.
        numbers: int32[N], scratch: the new number of each node, ``NO_NODE`` where it is forgotten.
        shifts: int32[N], scratch: how far the edges of each new node moved.
    """
    new_root = trees.child[0, root_edge]
    nodes, edges = 0, 0
    for node in range(trees.nodes_used[0]):
        numbers[node] = NO_NODE
        parent = NO_NODE
        if node > new_root:
            parent = numbers[trees.parent[0, node]]
        if node != new_root and parent == NO_NODE:
            continue
        number = nodes
        nodes += 1
        numbers[node] = number
        first, count = trees.first_edge[0, node], trees.num_edges[0, node]
        shifts[number] = edges - first
        if parent != NO_NODE:
            parent_edge = trees.parent_edge[0, node] + shifts[parent]
            trees.parent[0, number] = parent
            trees.parent_edge[0, number] = parent_edge
            trees.child[0, parent_edge] = number
        trees.state[0, number] = trees.state[0, node]
        trees.value[0, number] = trees.value[0, node]
        trees.reward[0, number] = trees.reward[0, node]
        trees.first_edge[0, number] = edges
        trees.num_edges[0, number] = count
        for edge in range(first, first + count):
            trees.action[0, edges] = trees.action[0, edge]
            trees.prior[0, edges] = trees.prior[0, edge]
            trees.visits[0, edges] = trees.visits[0, edge]
            trees.value_sum[0, edges] = trees.value_sum[0, edge]
            # A child comes later, and enters itself then.
            trees.child[0, edges] = NO_NODE
            edges += 1
    trees.nodes_used[0] = nodes
    trees.edges_used[0] = edges
