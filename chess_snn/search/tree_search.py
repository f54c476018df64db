"""The batched search: all trees advance together, in waves of simulations.

The way in which simulations are made, for all games at once. Read ``TreeSearch.run``: plant, wave
after wave, conclude. File 7 of 16 of the spine in docs/architecture.md.

A wave descends every tree to a leaf, or to several where none depends on what another one finds. It
steps the game there, asks the network about all new leaves at once, and backs the values up: every
node on the way counts a visit and adds the value, in its mover's view, to its sum. Trees know no
game and the game knows no tree.

The root rule chooses edges at the root. Below it (:mod:`chess_snn.search.descent`) a descent takes
the edge whose share of the visits lags most behind the improved policy or, with PUCT, the one with
the largest sum of value and prior bonus.

Dimensions: G games, L descents of a wave, M columns for legal actions.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from chess_snn.games.base import Game, GameBatch
from chess_snn.jit import lean_kernel
from chess_snn.nets.evaluator import Evaluator
from chess_snn.search.base import SearchResult
from chess_snn.search.descent import Rule, descend
from chess_snn.search.growth import favour, follow, grow, plant
from chess_snn.search.report import RootReport, report_root
from chess_snn.search.trees import Trees, allocate_trees, check_memory
from chess_snn.search.wave import Wave
from chess_snn.types import Float32Array, Int16Array, Int32Array, Int64Array, UInt64Array


class RootRule(Protocol):
    """Rule that distinguishes searches at the root."""

    def begin(
        self, trees: Trees, keys: UInt64Array, plies: Int32Array, temperatures: Float32Array
    ) -> None:
        """Prepare G planted trees; the arguments are those of :meth:`TreeSearch.run`."""
        ...

    @property
    def most_at_once(self) -> int:
        """Simulations of one tree in a wave at most."""
        ...

    def choose_edges(
        self, trees: Trees, simulations: Int32Array, rows: Int32Array, edges: Int32Array
    ) -> int:
        """Choose the descents of the next wave, while some tree has simulations left.

        Args:
            trees: G of them.
            simulations: int32[G], those of each tree that were chosen before; updated.
            rows: int32[L], filled: the tree of each descent, rising.
            edges: int32[L], filled: the edge it takes at the root, or ``RULE_CHOOSES``. No edge of
                a tree comes twice.

        Returns:
            How many descents.
        """
        ...

    def finish(
        self, trees: Trees, actions: Int16Array, values_stm: Float32Array, targets: Float32Array
    ) -> None:
        """Fill actions int16[G], root values float32[G] and policy targets float32[G, M]."""
        ...


class _LastRun(NamedTuple):
    """Games that were searched last."""

    keys: UInt64Array
    """uint64[G]."""
    plies: Int32Array
    """int32[G]."""

    def sources(self, keys: UInt64Array, plies: Int32Array) -> Int32Array:
        """int32[H]: the row here of each of H games, or -1: one that is new or not two plies on.

        Games keep their order and only leave; where they did not, none is found.
        """
        sources = np.full(len(keys), -1, np.int32)
        rows, old_rows = (
            np.flatnonzero(np.isin(*pair)) for pair in ((keys, self.keys), (self.keys, keys))
        )
        if np.array_equal(keys[rows], self.keys[old_rows]):
            is_next = (plies[rows] == self.plies[old_rows] + 2) & (rows <= old_rows)
            sources[rows[is_next]] = old_rows[is_next]
        return sources


class AskedLines(NamedTuple):
    """Lines of the trees that lead to B positions."""

    rows: Int32Array
    """int32[B]: the tree of each; those of one tree stand together, in the order of its nodes."""
    depths: Int32Array
    """int32[B]: steps below the root, 2 for all that are deeper."""
    states: UInt64Array
    """uint64[B, W]: the position two steps before; one step below the root, the root; undefined of
    a root."""


class TreeSearch:
    """Grows one tree a game by a fixed number of simulations.

    Not for two threads at once; searches of one evaluator may run side by side.
    """

    def __init__(
        self, game: Game, evaluator: Evaluator, rule: Rule, root: RootRule, *,
        simulations: int, num_games: int, discount: float, memory_mib: int, finds_wins: bool,
        reports_network: bool = False, num_searches: int = 1,
    ) -> None:
        """``num_games`` is the largest batch to expect; the other arguments are in range.

        With ``finds_wins``, a position that can be won at once is not asked about. With
        ``reports_network``, the value of a root is the network's, not the search's. With
        ``num_searches`` above 1, in a game of two players without chance events, the tree of a game
        goes on where its next search is two plies later; what it holds counts beside the new
        simulations. It has room for so many searches, and begins anew where one more does not fit.

        Raises:
            ConfigError: the trees may need more than ``memory_mib``.
        """
        check_memory(game.spec, simulations, num_games, memory_mib, num_searches)
        self.evaluator = evaluator
        self.simulations = simulations
        self._game, self._rule, self._root = game, rule, root
        self._discount, self._reports_network = discount, reports_network
        self._trees = allocate_trees(game.spec, num_searches * simulations, num_games)
        self._keeps_trees = num_searches > 1
        self._last: _LastRun | None = None
        self._wave = Wave(
            game, evaluator, finds_wins=finds_wins, most_leaves=num_games * root.most_at_once
        )
        self._result: SearchResult | None = None

    @property
    def num_games(self) -> int:
        """The largest batch it can search."""
        return len(self._trees.nodes_used)

    def run(
        self, batch: GameBatch, keys: UInt64Array, plies: Int32Array, temperatures: Float32Array,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> SearchResult:
        """See :meth:`chess_snn.search.base.Search.run`.

        Asked before each wave but the first, ``is_stopped`` ends the search with what it has.
        """
        if len(batch) > self.num_games:
            raise ValueError(f"this search holds {self.num_games} trees, got {len(batch)} games")
        trees, game, num_games = self._trees, self._game, len(batch)
        self._wave.begin()
        rows = self._rows_to_plant(batch, keys, plies)
        self._wave.asked_rows = rows.astype(np.int32)
        self._wave.asked_nodes = np.zeros_like(self._wave.asked_rows)
        answer = self._wave.ask(batch.state[rows], batch.legal_actions[rows], batch.num_legal[rows])
        plant(
            trees, rows, batch.state, batch.legal_actions, batch.num_legal,
            answer.legal_logits, answer.value_stm,
        )
        targets = np.empty((num_games, game.spec.max_legal), np.float32)
        priors = np.empty_like(targets)
        _copy_root_priors(trees, priors)
        favour(trees, self._wave.wins(batch, num_games))
        self._root.begin(trees, keys, plies, temperatures)
        simulations = np.zeros(num_games, np.int32)
        while (simulations < self.simulations).any():
            if simulations.any() and is_stopped():
                break
            self._simulate(batch, simulations)

        actions = np.empty(num_games, np.int16)
        values_stm = np.empty(num_games, np.float32)
        self._root.finish(trees, actions, values_stm, targets)
        if self._reports_network:
            values_stm[:] = trees.value[:num_games, 0]
        entropies, surprises = np.empty((2, num_games), np.float32)
        _compare(priors, batch.num_legal, targets, entropies, surprises)
        self._result = SearchResult(
            actions=actions, values_stm=values_stm, policy_targets=targets,
            prior_entropies=entropies, surprises=surprises,
        )
        if self._keeps_trees:
            self._last = _LastRun(keys, plies)
        return self._result

    def asked_lines(self) -> AskedLines:
        """Return the lines to what the network is being asked, or was asked last.

        An evaluator that is being called may ask this of its search.
        """
        rows, nodes = self._wave.asked_rows, self._wave.asked_nodes
        parents = np.where(nodes > 0, self._trees.parent[rows, nodes], 0)
        before = np.where(parents > 0, self._trees.parent[rows, parents], 0)
        depths = (nodes > 0).astype(np.int32) + (parents > 0)
        return AskedLines(rows, depths, self._trees.state[rows, before])

    def inspect(self, row: int) -> RootReport:
        """Return what the last run found at ``row`` of its batch; valid until the next run."""
        if self._result is None:
            raise ValueError("nothing was searched yet")
        result = self._result
        return report_root(
            self._trees, row, int(result.actions[row]), float(result.values_stm[row]),
            result.policy_targets[row],
        )

    def _rows_to_plant(
        self, batch: GameBatch, keys: UInt64Array, plies: Int32Array
    ) -> Int64Array:
        """int64[B]: the rows whose trees begin anew; in the others the last run's trees go on."""
        last, self._last = self._last, None
        if last is None:
            return np.arange(len(batch))
        is_kept = np.empty(len(batch), np.bool_)
        nodes = self._trees.state.shape[1]
        numbers, shifts = np.empty((2, nodes), np.int32)
        follow(
            self._trees, last.sources(keys, plies), batch.state, batch.num_legal,
            nodes - self.simulations, numbers, shifts, is_kept,
        )
        return np.flatnonzero(~is_kept)

    def _simulate(self, roots: GameBatch, simulations: Int32Array) -> None:
        """One wave; ``simulations`` int32[G] counts those of each tree."""
        wave, leaf, spec = self._wave, self._wave.leaf, self._game.spec
        count = self._root.choose_edges(self._trees, simulations, wave.rows, wave.root_edges)
        descend(
            self._trees, self._rule, wave.rows, wave.root_edges[:count], roots.history, roots.ply,
            spec.history_word, leaf.state, leaf.history, wave.history_rows, leaf.ply,
            leaf.termination, wave.actions, wave.leaves, wave.is_new,
        )
        wins, answer = wave.evaluate(count)
        grow(
            self._trees, wave.rows, wave.leaves, wave.is_new, leaf.state, leaf.legal_actions,
            leaf.num_legal, wave.events, leaf.reward, wins, wave.answers, answer.legal_logits,
            answer.value_stm, self._discount, spec.value_sign,
        )


@lean_kernel
def _copy_root_priors(trees: Trees, priors: Float32Array) -> None:
    """``priors`` float32[G, M]: the network's policy at each root, before any noise."""
    for g in range(len(priors)):
        first = trees.first_edge[g, 0]
        for j in range(trees.num_edges[g, 0]):
            priors[g, j] = trees.prior[g, first + j]


@lean_kernel
def _compare(
    priors: Float32Array, num_legal: Int32Array, targets: Float32Array, entropies: Float32Array,
    surprises: Float32Array,
) -> None:
    """Entropy of each root's prior and divergence of its target from it, both float32[G], nats."""
    for g in range(len(targets)):
        entropy, divergence = 0.0, 0.0
        for j in range(num_legal[g]):
            prior, target = float(priors[g, j]), float(targets[g, j])
            if prior > 0:
                entropy -= prior * np.log(prior)
                if target > 0:
                    divergence += target * np.log(target / prior)
        entropies[g] = entropy
        surprises[g] = max(divergence, 0.0)
