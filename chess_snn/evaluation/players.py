"""Who can play a match: the interface, the random mover, and any search.

Dimensions: G games, M columns for legal actions.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from chess_snn.config import check_range
from chess_snn.games.base import NO_ACTION, GameBatch
from chess_snn.games.sampling import random_legal_actions
from chess_snn.search.base import Search
from chess_snn.types import Int16Array, Int32Array, UInt64Array

FORFEIT: Final = -2
"""In place of an action: the player broke the rules, and loses the game."""
VOID: Final = -3
"""In place of an action: the player could not answer, and the game counts for nobody."""


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """What is known of the program behind a player."""

    identity: str
    """Its name and version, in its own words."""
    failures: int
    """How often it died, hung or answered nothing, and was started anew."""
    last_failure: str | None
    """What happened, and in which position."""
    last_illegal: str | None
    """The last answer that was no legal move, and its position."""

    def followed_by(self, later: "ProgramFacts") -> "ProgramFacts":
        """What is known after more games of the same program."""
        return ProgramFacts(
            later.identity,
            self.failures + later.failures,
            later.last_failure or self.last_failure,
            later.last_illegal or self.last_illegal,
        )


class Player(Protocol):
    """Chooses actions for many games at once.

    A player that is another program also has a property ``program``, see :func:`program_of`.
    """

    @property
    def name(self) -> str:
        """Identifies the player in results; two players of one match differ in it."""
        ...

    def choose(self, batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
        """A legal action for every row of ``batch``, which is not changed.

        Rows do not influence each other: a position gets the same answer alone as among others.

        Args:
            batch: G positions, some of which may have ended.
            keys: uint64[G], one random stream a game; ``plies`` is the place in it.
            plies: int32[G], half-moves since each game's start.

        Returns:
            int16[G]: the action to play, ``NO_ACTION`` where the game has ended; ``FORFEIT`` or
            ``VOID`` from a player that is another program, and did not give a legal one.
        """
        ...


def program_of(player: Player) -> ProgramFacts | None:
    """The program behind ``player``; None where it is one of ours."""
    facts: ProgramFacts | None = getattr(player, "program", None)
    return facts


class RandomPlayer:
    """Plays every legal action with the same probability."""

    def __init__(self, name: str = "random") -> None:
        self.name = name

    def choose(self, batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
        """See :meth:`Player.choose`."""
        return random_legal_actions(batch, keys, plies)


class SearchPlayer:
    """Plays what a search says, at one temperature throughout the game."""

    def __init__(self, search: Search, name: str, temperature: float = 0.0) -> None:
        """``temperature`` >= 0; 0 plays the best action."""
        check_range("temperature", temperature, ge=0.0, lt=np.inf)
        self.name = name
        self._search = search
        self._temperature = temperature

    def choose(self, batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
        """See :meth:`Player.choose`."""
        actions = np.full(len(batch), NO_ACTION, dtype=np.int16)
        live = np.flatnonzero(batch.num_legal)
        if len(live):
            temperatures = np.full(len(live), self._temperature, dtype=np.float32)
            result = self._search.run(batch.take(live), keys[live], plies[live], temperatures)
            actions[live] = result.actions
        return actions
