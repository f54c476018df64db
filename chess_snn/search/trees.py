"""Search trees of many games as flat arrays: one allocation, no objects, rows that are independent.

Node 0 of every tree is its root. A node that the rules went on from has *edges*, one for each legal
action, in a run of the game's edge columns; a node without edges has ended the game. An edge points
to its child node once it was first visited. The child counts the visits, for few edges of a tree
are ever visited.

In a game with chance events two kinds of nodes alternate. At a *decision node* a player chooses.
Its children are *chance nodes*: their positions are afterstates, their edges the possible events.
The root is a decision node.

Dimensions: G games, N nodes a game, E edges a game, W words a state row, M most legal actions.
"""

import math
from typing import Final, NamedTuple

import numpy as np

from chess_snn.errors import ConfigError
from chess_snn.games.base import GameSpec, ValueKind
from chess_snn.jit import lean_kernel
from chess_snn.types import Float32Array, Int16Array, Int32Array, UInt8Array, UInt64Array

NO_NODE: Final = -1
_MIB: Final = 2**20
_EDGE_BYTES: Final = 2 + 4 * 2
_TREE_BYTES: Final = 5 * 4
_MOST_EDGES: Final = 2**31 - 1
"""Their numbers are int32."""
_USUAL_EDGES: Final = 48
"""Edges a node in a tree that grows until its memory is full: more than the mean in games of
chess, which is about 35."""


class Trees(NamedTuple):
    """G trees. Values without a suffix are seen by the player who moves at the edge's own node."""

    state: UInt64Array
    """uint64[G, N, W]: each node's position."""
    value: Float32Array
    """float32[G, N]: the network's value for the side to move at the node; 0 at the game's end."""
    reward: Float32Array
    """float32[G, N]: of the step that led here, for the player who made it."""
    is_chance: UInt8Array
    """uint8[G, N]: 1 at chance nodes; uint8[G, 0] in a game without chance events."""
    parent: Int32Array
    """int32[G, N]; undefined at the root."""
    parent_edge: Int32Array
    """int32[G, N]: the edge that leads here; undefined at the root."""
    first_edge: Int32Array
    """int32[G, N]."""
    num_edges: Int32Array
    """int32[G, N]: 0 where the game has ended."""
    visits: Int32Array
    """int32[G, N]: of the edge that leads here; undefined at the root."""
    value_sum: Float32Array
    """float32[G, N]: over these visits, discounted, rewards included, for the player who moved
    here; undefined at the root."""
    action: Int16Array
    """int16[G, E]."""
    prior: Float32Array
    """float32[G, E]: the network's policy, or the exact probabilities of a chance node's events;
    sums to 1 over a node's edges."""
    child: Int32Array
    """int32[G, E]: ``NO_NODE`` before the first visit."""
    nodes_used: Int32Array
    """int32[G]."""
    edges_used: Int32Array
    """int32[G]."""
    value_bounds: Float32Array
    """float32[G, 2]: the lowest and the highest of the network's value of the root and the mean
    values that edges of decision nodes have had in the tree; float32[G, 0] in a game of wins, whose
    values are bounded by themselves."""
    value_scale: Float32Array
    """float32[G]: what differences of values are multiplied with before they meet priors: 1 over
    the distance of the bounds (see :mod:`chess_snn.search.growth`); exactly 1 in a game of wins."""


@lean_kernel
def is_chance_node(is_chance: UInt8Array, g: int, node: int) -> bool:
    """Return whether nature moves at the node; of ``Trees.is_chance``."""
    return bool(is_chance.shape[1] > 0 and is_chance[g, node] > 0)


@lean_kernel
def equal_rows(one: UInt64Array, other: UInt64Array) -> bool:
    """Return whether two rows hold the same words."""
    are_equal = True
    for word in range(len(one)):
        are_equal &= one[word] == other[word]
    return are_equal


@lean_kernel
def edge_visits(trees: Trees, g: int, edge: int) -> int:
    """Visits of an edge."""
    child = trees.child[g, edge]
    visits: int = 0 if child == NO_NODE else trees.visits[g, child]
    return visits


@lean_kernel
def edge_value_sum(trees: Trees, g: int, edge: int) -> np.float32:
    """Sum of the values of an edge's visits, 0 without any."""
    child = trees.child[g, edge]
    value_sum: np.float32 = np.float32(0) if child == NO_NODE else trees.value_sum[g, child]
    return value_sum


def visits_and_sums(trees: Trees, g: int, edges: slice) -> tuple[Int32Array, Float32Array]:
    """Visits int32[n] of n edges, and the sums of their values float32[n]; 0 without visits."""
    children = trees.child[g, edges]
    is_visited = children != NO_NODE
    visits, sums = trees.visits[g, children], trees.value_sum[g, children]
    return visits * is_visited, np.where(is_visited, sums, np.float32(0))


def tree_bytes(spec: GameSpec, simulations: int) -> int:
    """Bytes of one game's tree after ``simulations``, at most: every node with M edges.

    Count on the whole of it: ordinary positions have a sixth of M edges, but where the system backs
    memory by huge pages, most of what lies between is backed too.
    """
    nodes = simulations + 1
    return nodes * _node_bytes(spec) + _most_edges(spec, nodes) * _EDGE_BYTES + _TREE_BYTES


def check_memory(
    spec: GameSpec, simulations: int, num_games: int, memory_mib: int, num_searches: int = 1
) -> None:
    """Check that the trees of ``num_games`` games, after ``num_searches`` of them, fit.

    Raises:
        ConfigError: they may need more than ``memory_mib``; names what to change.
    """
    needed = tree_bytes(spec, num_searches * simulations) * num_games
    if needed > memory_mib * _MIB:
        most = memory_mib * _MIB // (tree_bytes(spec, 1) * num_games // 2) // num_searches
        raise ConfigError(
            f"trees of {simulations} simulations for {num_games} games at once may need "
            f"{needed // _MIB:,} MiB, more than search.memory_mib = {memory_mib:,}; lower the "
            f"simulations (about {most:,} fit), play fewer games at once, "
            + ("set search.keeps_trees = false, " if num_searches > 1 else "")
            + "or raise search.memory_mib"
        )


def allocate_trees(spec: GameSpec, simulations: int, num_games: int) -> Trees:
    """Uninitialised trees with room for every node that ``simulations`` can add."""
    nodes = simulations + 1
    return _allocate(spec, num_games, nodes, _most_edges(spec, nodes))


def allocate_tree(spec: GameSpec, memory_mib: int) -> Trees:
    """One uninitialised tree that takes ``memory_mib`` when it is full, or what can be numbered.

    It has room for ``_USUAL_EDGES`` edges a node; who grows it must watch that neither runs out.
    """
    nodes = min(memory_mib * _MIB // _usual_node_bytes(spec), _MOST_EDGES // _USUAL_EDGES)
    return _allocate(spec, 1, nodes, nodes * _USUAL_EDGES)


def check_wave_fits(spec: GameSpec, memory_mib: int, num_leaves: int) -> None:
    """Check that a tree of :func:`allocate_tree` has room for a root and ``num_leaves`` more.

    Raises:
        ConfigError: it has not; names the memory that would do.
    """
    # Every new node may have as many edges as any position has.
    nodes = (1 + num_leaves) * max(1.0, spec.max_legal / _USUAL_EDGES)
    needed = math.ceil(nodes * _usual_node_bytes(spec) / _MIB)
    if memory_mib < needed:
        raise ConfigError(
            f"a tree of {memory_mib:,} MiB has no room for a wave of {num_leaves:,} leaves; give "
            f"it {needed:,} MiB, or ask for fewer leaves at once (fewer threads)"
        )


def _most_edges(spec: GameSpec, nodes: int) -> int:
    """Edges of a tree of ``nodes``, at most.

    A chance node is the child of a decision node, which has one for each action at most.
    """
    if not spec.is_stochastic:
        return nodes * spec.max_legal
    decisions = -(-nodes // (1 + spec.num_actions))
    return decisions * spec.num_actions + (nodes - decisions) * spec.max_legal


def _usual_node_bytes(spec: GameSpec) -> int:
    return _node_bytes(spec) + _USUAL_EDGES * _EDGE_BYTES


def _allocate(spec: GameSpec, num_games: int, num_nodes: int, num_edges: int) -> Trees:
    nodes, edges = (num_games, num_nodes), (num_games, num_edges)
    is_bounded = spec.value_kind is ValueKind.WDL
    return Trees(
        state=np.empty((*nodes, spec.state_words), np.uint64),
        value=np.empty(nodes, np.float32),
        reward=np.empty(nodes, np.float32),
        is_chance=np.zeros((num_games, num_nodes if spec.is_stochastic else 0), np.uint8),
        parent=np.empty(nodes, np.int32),
        parent_edge=np.empty(nodes, np.int32),
        first_edge=np.empty(nodes, np.int32),
        num_edges=np.empty(nodes, np.int32),
        visits=np.empty(nodes, np.int32),
        value_sum=np.empty(nodes, np.float32),
        action=np.empty(edges, np.int16),
        prior=np.empty(edges, np.float32),
        child=np.empty(edges, np.int32),
        nodes_used=np.empty(num_games, np.int32),
        edges_used=np.empty(num_games, np.int32),
        value_bounds=np.empty((num_games, 0 if is_bounded else 2), np.float32),
        value_scale=np.ones(num_games, np.float32),
    )


def _node_bytes(spec: GameSpec) -> int:
    return 8 * spec.state_words + 4 * 8 + spec.is_stochastic
