"""State of an engine from move to move: the network, ready to answer, its tree and its pace.

A search looks at its orders between waves. A wave of a large network on one core may take too long,
so a slow wave is followed by smaller ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from chess_snn.errors import ChessSnnError, ConfigError
from chess_snn.games.base import Game
from chess_snn.search import GrowingTree
from chess_snn.types import Int16Array, LogFn
from chess_snn.uci.options import Options
from chess_snn.uci.position import Position

if TYPE_CHECKING:
    from chess_snn.api.network import Net  # a GUI waits for `uciok` without it

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


OpenNet: TypeAlias = "Callable[[str], Net]"
"""Loads the network that a text names; raises a ChessSnnError where it cannot."""


class Engine:
    """The network and the tree of one game. For one thread at a time."""

    def __init__(self, game: Game, open_net: OpenNet, tell: LogFn) -> None:
        self.game = game
        self._open_net, self._tell = open_net, tell
        self._loaded: Net | None = None
        self._model_text = ""
        self._refused_text: str | None = None
        self.refusal = ""
        """Why the last request failed, and the fix; empty where it succeeded."""
        self._built_for: tuple[object, ...] = ()
        self._playing: Net | None = None
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
        if self._loaded is None:
            return
        wanted = (
            self._model_text, options.device, options.ticks, options.precision, options.threads,
            options.hash_mib,
        )
        if wanted != self._built_for:
            try:
                self._build(self._loaded, options)
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
        if self._playing is not None:
            self._playing.close()
        self._playing, self._tree, self._built_for = None, None, ()

    def _load(self, text: str) -> None:
        self._refused_text = None
        if not text:
            self.close()
            self._loaded, self._model_text, self.refusal = None, "", ""
            return
        try:
            loaded = self._open_net(text)
        except (ChessSnnError, OSError) as error:
            stays = f"; {self._loaded.name} stays" if self._loaded else ""
            self.refusal = (
                f"cannot use model {text}: {error}{stays}; ucinewgame tries it again"
            )
            self._tell(f"info string {self.refusal}")
            self._refused_text = text
            return
        self._loaded, self._model_text = loaded, text
        self._tell(f"info string model {loaded.name}")

    def _build(self, loaded: Net, options: Options) -> None:
        net, leaves = self._placed(loaded, options), _LEAVES_A_THREAD * options.threads
        try:
            tree = GrowingTree(
                self.game, net.evaluator, net.settings, memory_mib=options.hash_mib,
                most_leaves=leaves,
            )
        except (MemoryError, ChessSnnError):
            net.close()
            raise
        self.close()
        self._playing, self._tree, self._pace = net, tree, Pace(leaves)
        self._planted = None
        self._warm_up(tree, self._pace)

    def _placed(self, loaded: Net, options: Options) -> Net:
        """The network where ``options`` want it, and with their ticks if it can have them."""
        precision = None if options.precision == "model" else options.precision
        place = partial(
            loaded.copy, device=options.device, precision=precision, threads=options.threads
        )
        trained = loaded.network.config.ticks
        if options.ticks in (0, trained):
            return place()
        try:
            other = place(ticks=options.ticks)
        except ConfigError as error:
            self._tell(
                f"info string Ticks {options.ticks} is not possible: {error}; it keeps {trained}"
            )
            return place()
        self._tell(
            f"info string network rebuilt with {options.ticks} ticks and the same weights; it was "
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
