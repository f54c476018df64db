"""One tree that grows for as long as there is time, and follows its game from move to move.

Edges are chosen as the settings say, without noise. :mod:`chess_snn.search.gumbel` halves once at
the root, and has to know its number of simulations beforehand. Here halving follows halving in
rounds, as in anytime sequential halving (Sagers et al. 2024, arXiv 2411.07171), and each round has
as many simulations as all before it together. So it begins with as many actions as a search of its
size considers, and what was learnt decides which.

Dimensions: N nodes, n actions; E edges of the root, S of them that still take part.
"""

from math import isqrt
from typing import Final

import numpy as np

from chess_snn.errors import ConfigError
from chess_snn.games.base import Game, GameBatch
from chess_snn.nets.evaluator import Evaluation, Evaluator
from chess_snn.search.descent import LEAST_PRIOR, RULE_CHOOSES, Rule, complete_values
from chess_snn.search.growth import favour, plant, reroot
from chess_snn.search.report import Line, best_lines, prove
from chess_snn.search.settings import SearchSettings
from chess_snn.search.trees import (
    NO_NODE,
    Trees,
    allocate_tree,
    check_wave_fits,
    visits_and_sums,
)
from chess_snn.search.wave import Wave, gather, settle
from chess_snn.settings import check_range
from chess_snn.types import Float32Array, Int16Array, Int32Array

_FIRST_ROUND: Final = 16
"""Simulations; of 4 actions the better 2 then have 6 visits each, the others 2."""


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
            ConfigError: one of the two is below 1, the memory is too small for one wave, or the
                game has chance events or another number of players.
        """
        if game.spec.is_stochastic or game.spec.num_players != 2:
            raise ConfigError(
                f"a growing tree needs a game of two players without chance events, which "
                f"{game.spec.name} is not; search with a fixed number of simulations"
            )
        check_range("memory_mib", memory_mib, ge=1)
        check_range("most_leaves", most_leaves, ge=1)
        check_wave_fits(game.spec, memory_mib, most_leaves)
        self.most_leaves = most_leaves
        self._game, self._discount = game, settings.discount
        self._rule = settings.rule()
        self._rounds = None if settings.kind == "puct" else Rounds(self._rule)
        self._trees = allocate_tree(game.spec, memory_mib)
        self._proofs, self._heights, *self._scratch = np.empty((4, self.num_nodes), np.int32)
        self._root: GameBatch | None = None
        self._root_wdl_stm = np.empty(3, np.float32)
        self._wave = Wave(
            game, evaluator, finds_wins=settings.finds_wins, most_leaves=most_leaves
        )

    @property
    def num_nodes(self) -> int:
        """N: nodes there is room for."""
        return int(self._trees.state.shape[1])

    @property
    def is_planted(self) -> bool:
        """Return whether there is a root."""
        return self._root is not None

    @property
    def visits(self) -> int:
        """Simulations that went through the root and count, those kept from earlier roots too."""
        return int(visits_and_sums(self._trees, 0, self._root_edges())[0].sum())

    def is_settled(self, simulations: float) -> bool:
        """Return whether ``simulations`` more cannot change that the best action leads.

        False where visits do not decide: in a tree that halves at its root.
        """
        if self._rounds is not None:
            return False
        visits, _ = visits_and_sums(self._trees, 0, self._root_edges())
        *_, second, first = np.sort(np.append(visits, [0, 0]))
        # A most visited action that is not the best one is a proved loss.
        return first - second > simulations and self.lines(1)[0].visits == int(first)

    @property
    def is_full(self) -> bool:
        """Return whether there is no room for another wave."""
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
        self._wave.begin()
        answer = self._wave.ask(root.state, root.legal_actions, root.num_legal)
        plant(
            self._trees, np.zeros(1, np.int64), root.state, root.legal_actions, root.num_legal,
            answer.legal_logits, answer.value_stm,
        )
        favour(self._trees, self._wave.wins(root, 1))
        self._stand_at(root, answer)

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
        reroot(self._trees, 0, child, 0, *self._scratch)
        self._game.step(root, np.array([action], np.int16))
        self._wave.begin()
        self._stand_at(root, self._wave.ask(root.state, root.legal_actions, root.num_legal))
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
        root, wave, spec = self._root, self._wave, self._game.spec
        leaf = wave.leaf
        if self._rounds is None:
            root_edges = np.full(num_leaves, RULE_CHOOSES, np.int32)
        else:
            root_edges = self._rounds.next_edges(self._trees, num_leaves)
        count = gather(
            self._trees, self._rule, wave.rows, root_edges, root.history, root.ply,
            spec.history_word, leaf.state, leaf.history, wave.history_rows, leaf.ply,
            leaf.termination, wave.actions, wave.leaves, wave.is_new,
        )
        wins, answer = wave.evaluate(count)
        settle(
            self._trees, wave.rows, wave.leaves, wave.is_new, leaf.state, leaf.legal_actions,
            leaf.num_legal, wave.events, leaf.reward, wins, wave.answers, answer.legal_logits,
            answer.value_stm, self._discount, spec.value_sign,
        )
        return count

    def lines(self, count: int | None = None) -> list[Line]:
        """The ``count`` best actions of the root with what should follow, best first.

        By default all of them, which takes much longer than one or two.
        """
        prove(self._trees, self._proofs, self._heights, *self._scratch)
        return best_lines(self._trees, self._proofs, count, by_value=self._rounds is not None)

    @property
    def height(self) -> int:
        """Plies of the longest path, at the time of the last :meth:`lines`."""
        return int(self._heights[0])

    def _stand_at(self, root: GameBatch, answer: Evaluation) -> None:
        self._root, self._root_wdl_stm = root, answer.wdl_stm[0]
        if self._rounds is not None:
            self._rounds.begin()

    def _root_edges(self) -> slice:
        if self._root is None:
            return slice(0, 0)
        return slice(0, int(self._trees.num_edges[0, 0]))


class Rounds:
    """Choice of the root's edges for the next descents of the one tree."""

    def __init__(self, rule: Rule) -> None:
        """``rule`` says how much values count beside priors."""
        self._rule = rule
        self.begin()

    def begin(self) -> None:
        """Forget the rounds of another root."""
        self._edges: Int32Array = np.empty(0, np.int32)
        self._begun = self._simulations = self._share = 0

    def next_edges(self, trees: Trees, most: int) -> Int32Array:
        """int32[n]: the edges of the next descents, from 1 to ``most``, none past a halving."""
        visits, _ = visits_and_sums(trees, 0, slice(int(trees.num_edges[0, 0])))
        visits_so_far = int(visits.sum())
        if visits_so_far >= self._begun + self._simulations:
            self._halve(trees, visits_so_far)
        first = visits_so_far - self._begun
        turns = np.arange(first, min(first + most, self._simulations))
        return self._edges[turns % len(self._edges)]

    def _halve(self, trees: Trees, visits_so_far: int) -> None:
        """Leave the better half; of two, or none, begin a round with the best of all."""
        scores = root_scores(trees, self._rule)
        if len(self._edges) > 2:
            candidates, wanted = self._edges, max(2, len(self._edges) // 2)
        else:
            candidates = np.arange(len(scores), dtype=np.int32)
            simulations = max(_FIRST_ROUND, visits_so_far)
            wanted = min(isqrt(simulations), len(scores))
            self._share = simulations // max(1, (wanted - 1).bit_length())
        best = np.argsort(-scores[candidates], kind="stable")[:wanted]
        self._edges = candidates[best]
        self._begun, self._simulations = visits_so_far, wanted * max(1, self._share // wanted)


def root_scores(trees: Trees, rule: Rule) -> Float32Array:
    """float32[E]: logits of the improved policy at the root (Danihelka et al. 2022, §4)."""
    edges = slice(0, int(trees.num_edges[0, 0]))
    visits, sums = visits_and_sums(trees, 0, edges)
    values = complete_values(trees, rule, 0, 0)
    means = np.where(visits > 0, sums / np.maximum(visits, 1), values.mixed)
    logits = np.log(np.maximum(trees.prior[0, edges], LEAST_PRIOR))
    scores: Float32Array = (logits + values.factor * means).astype(np.float32)
    return scores
