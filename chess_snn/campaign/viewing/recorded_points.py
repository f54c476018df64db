"""Recorded games of one player: the points they came to, and their moves as text.

Dimensions: n games, N positions in all.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from chess_snn.campaign.store.collection import CollectedGame, GameCollection
from chess_snn.data import START_KINDS, GameRecords, play_actions, rewards_of, state_rows
from chess_snn.games.base import Game
from chess_snn.types import Float64Array, Int64Array, UInt64Array

_MOVES_A_LINE: Final = 10


@dataclass(frozen=True, slots=True)
class ReplayedGame:
    """A recorded game after some of its plies."""

    ply: int
    num_plies: int
    state: UInt64Array
    """uint64[W]; at the end without the last chance event, which is not recorded."""
    points: float
    """Up to there."""
    facts: dict[str, str]
    """What the whole game came to, and where it is found."""
    moves: str
    """All of them, ten a line behind the number of the first."""


def points_and_milestones(game: Game, records: GameRecords) -> tuple[Float64Array, Int64Array]:
    """float64[n] points and int64[n] milestones of each game since its recorded beginning."""
    rewards = rewards_of(game, records.states, records.actions).astype(np.float64)
    lasts = records.game_offsets[1:] - 1
    ends = play_actions(game, records.states[lasts], records.actions[lasts]).state
    points = game.spec.score_unit * np.add.reduceat(rewards, records.game_offsets[:-1])
    return points, game.milestones(ends)


def replay(
    game: Game, collection: GameCollection, found: CollectedGame, ply: int | None
) -> ReplayedGame:
    """The game after ``ply`` of its plies, in [0, its number]; None: after all of them."""
    records = found.records
    rows = slice(*records.game_offsets[found.index : found.index + 2])
    states, actions = state_rows(game.spec, records.states[rows]), records.actions[rows]
    points = game.spec.score_unit * rewards_of(game, states, actions).astype(np.float64)
    end, num_plies = play_actions(game, states[-1:], actions[-1:]).state, len(actions)
    ply = num_plies if ply is None else ply
    spec, shard = game.spec, found.shard
    facts = {
        "game": f"{found.number} of {collection.name}, {shard.name}",
        "generation": "?" if shard.generation is None else str(shard.generation),
        "start": START_KINDS[records.start_kinds[found.index]],
        "score": f"{points.sum():,.0f}",
        spec.milestone_name: f"{int(game.milestones(end)[0]):,}",
        "moves": f"{num_plies:,}",
        "ended by": collection.ending(records, found.index).replace("_", " "),
    }
    facts.pop("", None)  # of a game without milestones
    names = [
        game.format_action(state, int(action))
        for state, action in zip(states, actions, strict=True)
    ]
    width = len(str(num_plies))
    moves = [
        f"{first + 1:>{width}}. {' '.join(names[first : first + _MOVES_A_LINE])}"
        for first in range(0, num_plies, _MOVES_A_LINE)
    ]
    state = end[0] if ply == num_plies else states[ply]
    return ReplayedGame(
        ply, num_plies, state, float(points[:ply].sum()), facts, "\n".join(moves)
    )
