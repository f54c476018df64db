"""State of an engine from move to move: the network, ready to answer, its tree and its pace.

A search looks at its orders between waves. A wave of a large network on one core may take too long,
so a slow wave is followed by smaller ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from chess_snn import nets
from chess_snn.campaign.models.model import Model
from chess_snn.errors import ChessSnnError, ConfigError
from chess_snn.games.base import Game
from chess_snn.nets import OwnedEvaluator
from chess_snn.search import GrowingTree
from chess_snn.types import Int16Array, LogFn
from chess_snn.uci.options import Options
from chess_snn.uci.position import Position

LONGEST_WAVE_S: Final = 0.04
"""Waves are made smaller above it, and larger below half of it."""
_VISITS_A_LEAF: Final = 16
"""While a tree is small, the leaves of one wave would be too much alike."""
_FORGETTING: Final = 0.9

_LEAVES_A_THREAD: Final = 8
_WARM_UP_WAVES: Final = 12
_TIMED_WAVES: Final = 4
_MANY_VISITS: Final = 1_000_000


class Pace:
    """Sizes the waves of an engine by the time that earlier ones took."""

    def __init__(self, most_leaves: int) -> None:
        self._most_leaves = most_leaves
        self._leaves = most_leaves
        self.reserve_s = 0.0
        """The longest of the latest turns: how late an order may be noticed."""

    def begin_search(self) -> None:
        """Trust half of what was measured: one slow wave must not spoil every move to come."""
        self.reserve_s /= 2

    def leaves(self, visits: int, wanted: int) -> int:
        """Leaves of the next wave: at least 1, at most ``wanted``, of a tree with ``visits``."""
        return max(1, min(self._leaves, 1 + visits // _VISITS_A_LEAF, wanted))

    def record(self, leaves: int, seconds: float, aside_s: float = 0.0) -> None:
        """A wave of ``leaves`` took ``seconds``, and what else was done in its turn ``aside_s``."""
        self.reserve_s = max(seconds + aside_s, _FORGETTING * self.reserve_s)
        if seconds > LONGEST_WAVE_S:
            self._leaves = max(1, min(self._leaves, leaves) // 2)
        elif leaves == self._leaves and seconds < LONGEST_WAVE_S / 2:
            self._leaves = min(2 * self._leaves, self._most_leaves)


FindModel = Callable[[str], Model]
"""Finds what a text names; raises a ChessSnnError where it cannot."""


class Engine:
    """The network and the tree of one game. For one thread at a time."""

    def __init__(
        self, game: Game, find_model: FindModel, tell: LogFn,
        load: Callable[[Model, Game], nets.Network] = Model.load,
    ) -> None:
        self.game = game
        self._find_model, self._tell, self._load_network = find_model, tell, load
        self._model: Model | None = None
        self._network: nets.Network | None = None
        self._model_text = ""
        self._refused_text: str | None = None
        self.refusal = ""
        """Why the last request failed, and the fix; empty where it succeeded."""
        self._built_for: tuple[object, ...] = ()
        self._evaluator: OwnedEvaluator | None = None
        self._tree: GrowingTree | None = None
        self._pace: Pace | None = None
        self._planted: Position | None = None

    @property
    def has_network(self) -> bool:
        """Return whether a search is possible."""
        return self._tree is not None

    @property
    def tree(self) -> GrowingTree:
        """The tree; :meth:`stand_at` says of which position."""
        if self._tree is None:
            raise ValueError("there is no network")
        return self._tree

    @property
    def pace(self) -> Pace:
        """Return the pace of the network on this machine."""
        if self._pace is None:
            raise ValueError("there is no network")
        return self._pace

    def prepare(self, options: Options) -> None:
        """Have the network that ``options`` ask for, loaded and warm.

        A failure is reported, and what was there before stays. The same model is not tried
        again until another one was asked for, or :meth:`forget` was called.
        """
        if options.model not in (self._model_text, self._refused_text):
            self._load(options.model)
        if self._model is None or self._network is None:
            return
        wanted = (
            self._model_text, options.device, options.ticks, options.precision, options.threads,
            options.hash_mib,
        )
        if wanted != self._built_for:
            try:
                self._build(self._model, self._network, options)
                self.refusal = ""
            except (ChessSnnError, MemoryError) as error:
                self.refusal = str(error)
                self._tell(f"info string {error}; the engine stays as it was")
            self._built_for = wanted

    def stand_at(self, position: Position, actions: Int16Array | None) -> int:
        """Let the tree begin at ``position``, which is searchable.

        The tree of an earlier position of the same game is kept as far as it goes. ``actions``
        int16[n] are the only ones tried at the root; such a tree is never kept.

        Returns:
            The visits kept.
        """
        tree = self.tree
        played = None if self._planted is None else position.actions_since(self._planted)
        self._planted = None
        kept = (
            actions is None and played is not None and tree.is_planted
            and all(tree.advance(action) for action in played)
        )
        if not kept:
            tree.plant(position.root, actions)
        if actions is None:
            self._planted = position
        return tree.visits if kept else 0

    def forget(self) -> None:
        """Begin the next search with an empty tree, and try a model that was refused once more."""
        self._planted, self._refused_text = None, None

    def close(self) -> None:
        """End the network's threads."""
        if self._evaluator is not None:
            self._evaluator.close()
        self._evaluator, self._tree, self._built_for = None, None, ()

    def _load(self, text: str) -> None:
        self._refused_text = None
        if not text:
            self.close()
            self._model, self._network, self._model_text, self.refusal = None, None, "", ""
            return
        try:
            model = self._find_model(text)
            network = self._load_network(model, self.game)
        except (ChessSnnError, OSError) as error:
            stays = f"; {self._model.label} stays" if self._model else ""
            self.refusal = (
                f"cannot use model {text}: {error}{stays}; ucinewgame tries it again"
            )
            self._tell(f"info string {self.refusal}")
            self._refused_text = text
            return
        self._model, self._network, self._model_text = model, network, text
        self._tell(f"info string model {model.label}")

    def _build(self, model: Model, trained: nets.Network, options: Options) -> None:
        network = self._with_ticks(trained, options.ticks)
        precision = model.precision if options.precision == "model" else options.precision
        leaves = _LEAVES_A_THREAD * options.threads
        evaluator = nets.make_evaluator(
            network, device=options.device, precision=precision, num_threads=options.threads,
        )
        try:
            tree = GrowingTree(
                self.game, evaluator, model.search, memory_mib=options.hash_mib,
                most_leaves=leaves,
            )
        except (MemoryError, ChessSnnError):
            evaluator.close()
            raise
        self.close()
        self._evaluator, self._tree, self._pace = evaluator, tree, Pace(leaves)
        self._planted = None
        self._warm_up(tree, self._pace)

    def _with_ticks(self, network: nets.Network, ticks: int) -> nets.Network:
        """The network, or one with the same weights that runs for another number of ticks."""
        trained = network.config.ticks
        if ticks in (0, trained):
            return network
        try:
            other = network.with_ticks(ticks)
        except ConfigError as error:
            self._tell(f"info string Ticks {ticks} is not possible: {error}; it keeps {trained}")
            return network
        self._tell(
            f"info string network rebuilt with {ticks} ticks and the same weights; it was "
            f"trained with {trained}"
        )
        return other

    def _warm_up(self, tree: GrowingTree, pace: Pace) -> None:
        """Compile kernels, let torch settle, and find the pace, before a clock runs."""
        tree.plant(self.game.allocate(1))
        for wave in range(_WARM_UP_WAVES):
            tree.grow(min(1 + wave, tree.most_leaves))
        for _ in range(_TIMED_WAVES):
            leaves = pace.leaves(_MANY_VISITS, tree.most_leaves)
            start_s = time.monotonic()
            tree.grow(leaves)
            pace.record(leaves, time.monotonic() - start_s)
        tree.advance(tree.lines(1)[0].actions[0])
