"""The interface of every search, and the search without a tree.

The border between searching and playing. Read ``Search.run`` and ``SearchResult``: self-play needs
nothing else of a search. File 5 of 16 of the spine in docs/architecture.md.

Root positions go in; chosen actions and policy targets come out. Self-play, players and analysis
call :meth:`Search.run` and do not know whether it asked the network once a position
(:class:`PolicySearch`) or grew a tree.

Dimensions: G games, M columns for legal actions.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from chess_snn.games.base import Game, GameBatch
from chess_snn.jit import lean_kernel
from chess_snn.nets.evaluator import Evaluator
from chess_snn.rng import random_unit, random_word
from chess_snn.types import Float32Array, Int16Array, Int32Array, UInt64Array

_ROUNDING: Final = 1e-9
"""More than the rounding of float64 can change a noise of the draw."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search of G root positions; rows of ended games are undefined."""

    actions: Int16Array
    """int16[G]: the action to play."""
    values_stm: Float32Array
    """float32[G]: root value, side to move's view: in [-1, 1] in a game of wins, else the sum of
    rewards to expect."""
    policy_targets: Float32Array
    """float32[G, M]: weight of each listed legal action; rows sum to 1, 0 behind the list.
    float32[G, 0] without a tree, where the action to play has all the weight."""
    prior_entropies: Float32Array
    """float32[G], nats: entropy of the network's policy over the legal actions."""
    surprises: Float32Array
    """float32[G] >= 0, nats: divergence KL(policy target || network's policy); 0 without a tree."""


class Search(Protocol):
    """Chooses actions for many root positions at once."""

    @property
    def evaluator(self) -> Evaluator:
        """The network it asks; searches may share one.

        Of planes and legal actions it makes logits float32[B, M] of these actions, and values
        float32[B], side to move's view.
        """
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


class PolicySearch:
    """Plays from the network's policy over the legal actions, at a temperature.

    The action played has all the weight, until a teacher labels the game.
    """

    def __init__(self, game: Game, evaluator: Evaluator) -> None:
        self._game = game
        self.evaluator = evaluator

    def run(
        self,
        batch: GameBatch,
        keys: UInt64Array,
        plies: Int32Array,
        temperatures: Float32Array,
    ) -> SearchResult:
        """See :meth:`Search.run`."""
        evaluation = self.evaluator.evaluate(
            self._game.planes(batch.state), batch.legal_actions, batch.num_legal
        )
        num_games = len(batch)
        actions = np.empty(num_games, np.int16)
        entropies = np.empty(num_games, np.float32)
        _draw_actions(
            evaluation.legal_logits, batch.legal_actions, batch.num_legal,
            keys, plies, temperatures, actions, entropies,
        )
        return SearchResult(
            actions=actions,
            values_stm=evaluation.value_stm,
            policy_targets=np.empty((num_games, 0), np.float32),
            prior_entropies=entropies,
            surprises=np.zeros(num_games, np.float32),
        )


@lean_kernel
def _draw_actions(
    logits: Float32Array,
    legal_actions: Int16Array,
    num_legal: Int32Array,
    keys: UInt64Array,
    plies: Int32Array,
    temperatures: Float32Array,
    actions: Int16Array,
    entropies: Float32Array,
) -> None:
    """Draw each game's action by the Gumbel-max trick (Gumbel 1954; Maddison et al. 2014, §2)."""
    for g in range(len(num_legal)):
        count = num_legal[g]
        # One sub-stream a ply: draw j of it belongs to the j-th legal action.
        stream = random_word(keys[g], np.uint64(plies[g]))
        temperature = float(temperatures[g])
        best_slot, best_score = 0, -np.inf
        peak = -np.inf
        for j in range(count):
            logit = float(logits[g, j])
            peak = max(peak, logit)
            score = logit
            if temperature > 0.0:
                score = logit / temperature
                unit = random_unit(stream, np.uint64(j))
                if not _noise_is_below(best_score - score, unit):
                    score -= np.log(-np.log(unit))
            if score > best_score:
                best_slot, best_score = j, score
        actions[g] = legal_actions[g, best_slot]
        total, weighted = 0.0, 0.0
        for j in range(count):
            shifted = float(logits[g, j]) - peak
            weight = np.exp(shifted)
            total += weight
            weighted += weight * shifted
        entropies[g] = np.log(total) - weighted / total if count else 0.0


@lean_kernel
def _noise_is_below(bound: float, unit: float) -> bool:
    """Return whether -log(-log(unit)) is certainly below ``bound``, without its logarithms.

    As -log(unit) >= 1 - unit, it is where exp(bound) > 1 / (1 - unit); and for bounds from 0 on,
    the first terms of its series are below exp(bound).
    """
    x = max(bound, 0.0)
    series = 1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4)))
    return (1 - unit) * series > 1 + _ROUNDING
