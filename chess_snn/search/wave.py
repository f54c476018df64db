"""One wave of a search: its leaves, and what the rules and the network say of them.

:class:`chess_snn.search.tree_search.TreeSearch` knows which descents of a tree do not meet. For
:class:`chess_snn.search.growing.GrowingTree` leaves are gathered: each descent but the last leaves
a *virtual loss* on its path, a visit that lost, so that the next one looks elsewhere. All are taken
back before the leaves' values are backed up (Chaslot, Winands & van den Herik 2008, §3.3). Waves of
one leaf grow the same tree in both, to the bit.

Dimensions: L leaves at most, B of them that the network is asked about, K history length, W words a
state row.
"""

import numpy as np

from chess_snn.games.base import NO_ACTION, Game, GameBatch, ValueKind
from chess_snn.jit import lean_kernel
from chess_snn.nets.evaluator import Evaluation, Evaluator
from chess_snn.search.descent import Rule, descend
from chess_snn.search.growth import grow, narrow
from chess_snn.search.trees import Trees
from chess_snn.types import Float32Array, Int16Array, Int32Array, UInt8Array, UInt64Array


class Wave:
    """Arrays that a wave passes from kernel to kernel; allocated once, for the largest.

    Row k is that of descent k: :mod:`chess_snn.search.descent` fills the rows of ``leaf`` with the
    positions before the leaves, ``actions``, ``leaves`` and ``is_new``.
    """

    def __init__(
        self, game: Game, evaluator: Evaluator, *, finds_wins: bool, most_leaves: int
    ) -> None:
        self._game, self._evaluator = game, evaluator
        self._finds_wins = (
            finds_wins and game.spec.value_kind is ValueKind.WDL and not game.spec.is_stochastic
        )
        self.leaf: GameBatch = game.allocate(most_leaves)
        self.rows: Int32Array = np.zeros(most_leaves, np.int32)
        """int32[L]: the tree of each descent."""
        self.root_edges: Int32Array = np.empty(most_leaves, np.int32)
        """int32[L]: where it begins."""
        self.history_rows: Int32Array = np.empty(most_leaves, np.int32)
        """int32[L]: the root whose history a row of ``leaf`` has."""
        self.actions: Int16Array = np.empty(most_leaves, np.int16)
        """int16[L]."""
        self.leaves: Int32Array = np.empty(most_leaves, np.int32)
        """int32[L]."""
        self.is_new: UInt8Array = np.empty(most_leaves, np.uint8)
        """uint8[L]."""
        self.answers: Int32Array = np.empty(most_leaves, np.int32)
        """int32[L]: which row of the network's answer is that of the leaf, if it was asked."""
        self.asked_rows: Int32Array = np.empty(0, np.int32)
        """int32[B]: the tree of each position that the network was asked about last."""
        self.asked_nodes: Int32Array = np.empty(0, np.int32)
        """int32[B]: its node there."""
        self.events: Float32Array = np.empty((most_leaves, 0), np.float32)
        """float32[>= count, M] of the last wave: the probabilities of each leaf's listed events, 0
        where a player is to move; no columns in a game without chance events."""

    def begin(self) -> None:
        """Forget the roots of another search."""
        self.history_rows.fill(-1)

    def evaluate(self, count: int) -> tuple[Int16Array, Evaluation]:
        """Step to the first ``count`` leaves, and ask the network about the new ones still open.

        An action leads to an afterstate where the game has chance events, an event to a decision.

        Returns:
            As :func:`chess_snn.search.growth.grow` takes them: the wins int16[count], to which the
            leaves' legal actions are narrowed, and the answer, B rows.
        """
        leaf = self.leaf
        self._game.step(leaf, self.actions, num_rows=count)
        wins = self.wins(leaf, count)
        narrow(wins, leaf.legal_actions, leaf.num_legal)
        is_open = (leaf.num_legal[:count] > 0) & (wins == NO_ACTION)
        asked = np.flatnonzero(is_open & (self.is_new[:count] > 0))
        self.answers[asked] = np.arange(len(asked))
        self.asked_rows, self.asked_nodes = self.rows[asked], self.leaves[asked]
        num_legal = leaf.num_legal[asked]
        if self._game.spec.is_stochastic:
            self.events = self._game.event_probabilities(leaf.state[:count])
            # The rules know the policy of nature: the network is asked for a value only.
            num_legal[self.events[asked, 0] > 0] = 0
        num_columns = int(num_legal.max(initial=0))
        return wins, self.ask(leaf.state[asked], leaf.legal_actions[asked, :num_columns], num_legal)

    def wins(self, batch: GameBatch, count: int) -> Int16Array:
        """int16[count]: an action that wins at once in each of the first rows, or ``NO_ACTION``.

        Rows that have ended are skipped; all are without ``finds_wins``, and in games with chance
        events or without wins.
        """
        if not self._finds_wins:
            return np.full(count, NO_ACTION, np.int16)
        return self._game.winning_actions(
            batch.state[:count], batch.legal_actions[:count], batch.num_legal[:count]
        )

    def ask(
        self, states: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Evaluation:
        """The network's answer on ``states`` uint64[B, W] with their legal lists."""
        return self._evaluator.evaluate(self._game.planes(states), legal_actions, num_legal)


@lean_kernel
def gather(
    trees: Trees, rule: Rule, rows: Int32Array, root_edges: Int32Array,
    root_history: UInt64Array, root_plies: Int32Array, history_word: int,
    states: UInt64Array, history: UInt64Array, history_rows: Int32Array, plies: Int32Array,
    termination: UInt8Array, actions: Int16Array, leaves: Int32Array, is_new: UInt8Array,
) -> int:
    """Descend the one tree of ``trees`` by each of ``root_edges`` until a leaf is met twice.

    The arguments are those of :func:`chess_snn.search.descent.descend`; row k of each array with L
    rows is filled by descent k.

    Returns:
        How many rows to settle, at least 1.
    """
    first_pending, wanted = trees.nodes_used[0], len(root_edges)
    for k in range(wanted):
        row = slice(k, k + 1)
        descend(
            trees, rule, rows[row], root_edges[row], root_history, root_plies, history_word,
            states[row], history[row], history_rows[row], plies[row], termination[row],
            actions[row], leaves[row], is_new[row],
        )
        if is_new[k] > 0:
            # A later descent of the wave stops here.
            trees.num_edges[0, leaves[k]] = 0
        elif leaves[k] >= first_pending:
            _add_losses(trees, leaves[k - 1], -1)
            return k
        if k + 1 < wanted:
            _add_losses(trees, leaves[k], 1)
    return wanted


@lean_kernel
def settle(
    trees: Trees, rows: Int32Array, leaves: Int32Array, is_new: UInt8Array, states: UInt64Array,
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
            trees, rows[row], leaves[row], is_new[row], states[row], legal_actions[row],
            num_legal[row], events[row], rewards[row], wins[row], answers[row], logits, values_stm,
            discount, sign,
        )


@lean_kernel
def _add_losses(trees: Trees, leaf: int, count: int) -> None:
    node = leaf
    while node > 0:
        trees.visits[0, node] += count
        trees.value_sum[0, node] -= count
        node = trees.parent[0, node]
