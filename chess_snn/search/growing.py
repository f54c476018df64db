"""One tree that grows for as long as somebody has time, and follows its game from move to move.

PUCT without noise, whatever search the network was trained with: the other searches need to know
their number of simulations beforehand.

Dimensions: N nodes, L leaves a wave, n actions.
"""

from typing import Final

import numpy as np

from chess_snn.config import check_range
from chess_snn.games.base import NO_ACTION, Game, GameBatch
from chess_snn.nets.evaluator import Evaluation, Evaluator
from chess_snn.search.descent import PUCT_RULE, RULE_CHOOSES, Rule
from chess_snn.search.gathering import gather, settle
from chess_snn.search.growth import favour, narrow, plant
from chess_snn.search.lines import Line, best_lines
from chess_snn.search.proof import prove
from chess_snn.search.rerooting import reroot
from chess_snn.search.settings import SearchSettings
from chess_snn.search.trees import NO_NODE, allocate_tree, check_wave_fits
from chess_snn.types import Float32Array, Int16Array, Int32Array, UInt64Array

_ROOT_EDGES: Final = np.full(1, RULE_CHOOSES, np.int32)


class GrowingTree:
    """The tree of one position of a game of two players without chance events.

    Not for two threads at once.
    """

    def __init__(
        self, game: Game, evaluator: Evaluator, settings: SearchSettings, *, memory_mib: int,
        most_leaves: int,
    ) -> None:
        """A tree that takes ``memory_mib`` when full, and asks about ``most_leaves`` at once.

        Raises:
            ConfigError: one of the two is below 1, or the memory is too small for one wave.
        """
        check_range("memory_mib", memory_mib, ge=1)
        check_range("most_leaves", most_leaves, ge=1)
        check_wave_fits(game.spec, memory_mib, most_leaves)
        self.most_leaves = most_leaves
        self._game, self._evaluator = game, evaluator
        self._discount, self._finds_wins = settings.discount, settings.finds_wins
        self._rule = Rule(
            kind=PUCT_RULE, q_scale=settings.q_scale, visit_offset=settings.visit_offset,
            exploration=settings.exploration, unvisited_reduction=settings.unvisited_reduction,
        )
        self._trees = allocate_tree(game.spec, memory_mib)
        self._proofs, self._heights, *self._scratch = np.empty((4, self.num_nodes), np.int32)
        self._root: GameBatch | None = None
        self._root_wdl_stm = np.empty(3, np.float32)
        self._leaf = game.allocate(most_leaves)
        self._actions: Int16Array = np.empty(most_leaves, np.int16)
        self._leaves, self._answers = np.empty((2, most_leaves), np.int32)
        self._is_new = np.empty(most_leaves, np.uint8)

    @property
    def num_nodes(self) -> int:
        """N: nodes there is room for."""
        return int(self._trees.state.shape[1])

    @property
    def is_planted(self) -> bool:
        """Whether there is a root."""
        return self._root is not None

    @property
    def visits(self) -> int:
        """Simulations that went through the root and count, those kept from earlier roots too."""
        edges = self._root_edges()
        return int(self._trees.visits[0, edges].sum())

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another wave."""
        trees, leaves = self._trees, self.most_leaves
        edges = int(trees.edges_used[0]) + leaves * self._game.spec.max_legal
        return bool(
            trees.nodes_used[0] + leaves > self.num_nodes or edges > trees.action.shape[1]
        )

    @property
    def root_wdl_stm(self) -> Float32Array:
        """float32[3]: what the network says of the root."""
        return self._root_wdl_stm

    def plant(self, position: GameBatch, actions: Int16Array | None = None) -> None:
        """Begin anew at the one row of ``position``, which has not ended and is copied.

        ``actions`` int16[n], legal and at least one, are the only ones tried at the root; by
        default all are.
        """
        root = position.take(np.zeros(1, np.int64))
        if actions is not None:
            root.legal_actions[0, : len(actions)] = actions
            root.num_legal[0] = len(actions)
        answer = self._ask(root.state, root.legal_actions, root.num_legal)
        plant(
            self._trees, root.state, root.legal_actions, root.num_legal,
            answer.legal_logits, answer.value_stm,
        )
        favour(self._trees, self._wins(root, 1))
        self._root, self._root_wdl_stm = root, answer.wdl_stm[0]

    def advance(self, action: int) -> bool:
        """Play ``action`` at the root; its subtree, with visits and values, becomes the tree.

        Returns:
            False where nothing is known below it: no visit, or the end of the game. The tree must
            be planted again then.
        """
        root, edges = self._root, self._root_edges()
        self._root = None
        found = np.flatnonzero(self._trees.action[0, edges] == action)
        if root is None or len(found) == 0:
            return False
        edge = edges.start + int(found[0])
        child = int(self._trees.child[0, edge])
        if child == NO_NODE or self._trees.num_edges[0, child] == 0:
            return False
        reroot(self._trees, edge, *self._scratch)
        self._game.step(root, np.array([action], np.int16))
        self._root = root
        self._root_wdl_stm = self._ask(
            root.state, root.legal_actions, root.num_legal
        ).wdl_stm[0]
        return True

    def grow(self, num_leaves: int) -> int:
        """One wave: up to ``num_leaves`` descents, in [1, ``most_leaves``], and one evaluation.

        Returns:
            The simulations made: fewer where a descent met a leaf of the same wave. 0 where the
            tree is full.
        """
        if self._root is None:
            raise ValueError("nothing was planted")
        if self.is_full:
            return 0
        root, leaf, spec = self._root, self._leaf, self._game.spec
        count = gather(
            self._trees, self._rule, _ROOT_EDGES, root.history, root.ply, spec.history_word,
            leaf.state, leaf.history, leaf.ply, leaf.termination,
            self._actions, self._leaves, self._is_new, num_leaves,
        )
        self._game.step(leaf, self._actions, num_rows=count)
        wins = self._wins(leaf, count)
        narrow(wins, leaf.legal_actions, leaf.num_legal)
        is_open = (leaf.num_legal[:count] > 0) & (wins == NO_ACTION)
        asked = np.flatnonzero(is_open & (self._is_new[:count] > 0))
        self._answers[asked] = np.arange(len(asked))
        num_columns = int(leaf.num_legal[asked].max(initial=0))
        answer = self._ask(
            leaf.state[asked], leaf.legal_actions[asked, :num_columns], leaf.num_legal[asked]
        )
        settle(
            self._trees, self._leaves, self._is_new, leaf.state, leaf.legal_actions,
            leaf.num_legal, leaf.reward, wins, self._answers, answer.legal_logits, answer.value_stm,
            self._discount, spec.value_sign,
        )
        return count

    def lines(self, count: int | None = None) -> list[Line]:
        """The ``count`` best actions of the root with what should follow, best first.

        By default all of them, which takes much longer than one or two.
        """
        prove(self._trees, self._proofs, self._heights, *self._scratch)
        return best_lines(self._trees, self._proofs, count)

    @property
    def height(self) -> int:
        """Plies of the longest path, at the time of the last :meth:`lines`."""
        return int(self._heights[0])

    def _root_edges(self) -> slice:
        if self._root is None:
            return slice(0, 0)
        return slice(0, int(self._trees.num_edges[0, 0]))

    def _wins(self, batch: GameBatch, count: int) -> Int16Array:
        """int16[L]: an action that wins at once in each row, or ``NO_ACTION``."""
        if not self._finds_wins:
            return np.full(count, NO_ACTION, np.int16)
        return self._game.winning_actions(
            batch.state[:count], batch.legal_actions[:count], batch.num_legal[:count]
        )

    def _ask(
        self, states: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Evaluation:
        return self._evaluator.evaluate(self._game.planes(states), legal_actions, num_legal)
