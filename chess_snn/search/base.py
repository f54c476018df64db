"""The interface of every search: root positions in, chosen actions and policy targets out.

Self-play, players and analysis call :meth:`Search.run` and do not know whether it asked the
network once a position (:mod:`chess_snn.search.policy`) or grew a tree.

Dimensions: G games, M columns for legal actions.
"""

from dataclasses import dataclass
from typing import Protocol

from chess_snn.games.base import GameBatch
from chess_snn.nets.evaluator import Evaluator
from chess_snn.types import Float32Array, Int16Array, Int32Array, UInt64Array


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search says about G root positions; rows of ended games are undefined."""

    actions: Int16Array
    """int16[G]: the action to play."""
    values_stm: Float32Array
    """float32[G]: root value, side to move's view: in [-1, 1] in a game of wins, else the sum of
    rewards to expect."""
    policy_targets: Float32Array
    """float32[G, M]: weight of each listed legal action; rows sum to 1, 0 behind the list."""
    prior_entropies: Float32Array
    """float32[G], nats: entropy of the network's policy over the legal actions."""
    surprises: Float32Array
    """float32[G] >= 0, nats: divergence KL(policy target || network's policy); 0 without a tree."""


class Search(Protocol):
    """Chooses actions for many root positions at once."""

    @property
    def evaluator(self) -> Evaluator:
        """The network it asks; searches may share one."""
        ...

    def run(
        self,
        batch: GameBatch,
        keys: UInt64Array,
        plies: Int32Array,
        temperatures: Float32Array,
    ) -> SearchResult:
        """Search every row of ``batch``, which is not changed.

        Args:
            batch: G root positions, none of them ended.
            keys: uint64[G], one random stream a game; ``plies`` int32[G] is the place in it, so
                the same key at the same ply draws the same numbers, whatever the other rows hold.
            plies: int32[G], half-moves since each game's start.
            temperatures: float32[G] >= 0; 0 plays the best action.
        """
        ...
