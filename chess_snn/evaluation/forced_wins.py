"""Positions with a forced win in one or two moves, found in random games and proved exhaustively.

In chess: mates in one and in two. They measure a search without any opponent.

Dimensions: n positions of a suite, G random games, R rows of one batch of positions.
"""

from collections.abc import Iterator

import numpy as np

from chess_snn.config import check_range
from chess_snn.games.base import Game, GameBatch
from chess_snn.games.sampling import random_legal_actions
from chess_snn.rng import derive_seed, random_words
from chess_snn.search.base import Search
from chess_snn.types import Int16Array, Int64Array, Progress, UInt64Array

MOST_MOVES = 2
"""Of a win: three moves would cost hours to prove."""

_GAMES_A_ROUND = 512
_MOST_PLIES = 300

def forced_wins(
    game: Game, num_positions: int, num_moves: int, seed: int,
    on_progress: Progress | None = None,
) -> GameBatch:
    """``num_positions`` different positions in which the side to move can force a win.

    Args:
        game: of two players, whose random games are sometimes won.
        num_positions: n.
        num_moves: 1: some action wins at once. 2: none does, but after some action one does against
            every reply.
        seed: of the random games, in which every position stood so many moves before the end.
        on_progress: called whenever one is found.

    Raises:
        ConfigError: a number is out of range.
    """
    check_range("num_positions", num_positions, ge=1, le=100_000)
    check_range("num_moves", num_moves, ge=1, le=MOST_MOVES)
    found: dict[bytes, UInt64Array] = {}
    for state in _shortly_before_wins(game, 2 * num_moves - 1, seed):
        if num_moves > 1 and not len(winning_actions(game, _one(game, state), num_moves)):
            continue
        found.setdefault(state.tobytes(), state)
        if on_progress is not None:
            on_progress(len(found), num_positions)
        if len(found) == num_positions:
            break
    batch = game.allocate(num_positions)
    game.reset(batch, np.arange(num_positions), np.stack(list(found.values())))
    return batch


def winning_actions(game: Game, position: GameBatch, num_moves: int) -> Int16Array:
    """The actions that force a win in exactly ``num_moves`` (1 or 2), by trying everything.

    ``position`` is a batch of one. With 2, it is empty where an action wins at once.
    """
    actions = position.legal_actions[0, : position.num_legal[0]]
    children = _children(game, position)
    wins_at_once = children.reward == 1
    if num_moves == 1 or wins_at_once.any():
        return actions[wins_at_once] if num_moves == 1 else actions[:0]
    forces = [_is_lost_in_two(game, _row(children, row)) for row in range(len(children))]
    return actions[np.array(forces, np.bool_)]


def num_solved(game: Game, search: Search, positions: GameBatch, num_moves: int) -> int:
    """How many of ``positions`` the search, without noise, answers with an action that wins."""
    count = len(positions)
    chosen = search.run(
        positions, np.zeros(count, np.uint64), np.zeros(count, np.int32),
        np.zeros(count, np.float32),
    ).actions
    return sum(
        bool(chosen[row] in winning_actions(game, _row(positions, row), num_moves))
        for row in range(count)
    )


def _shortly_before_wins(game: Game, num_plies: int, seed: int) -> Iterator[UInt64Array]:
    """State rows ``num_plies`` before the end of random games that somebody won; without end."""
    key = np.full(_GAMES_A_ROUND, derive_seed(seed, "forced_wins"), np.uint64)
    rows = np.arange(_GAMES_A_ROUND)
    for game_round in range(2**32):
        keys = random_words(key, (game_round * _GAMES_A_ROUND + rows).astype(np.uint64))
        batch = game.allocate(_GAMES_A_ROUND)
        game.reset(batch, rows, game.initial_states(keys))
        trail: list[UInt64Array] = []
        lengths: Int64Array = np.zeros(_GAMES_A_ROUND, np.int64)
        for ply in range(_MOST_PLIES):
            trail.append(batch.state.copy())
            lengths += batch.num_legal > 0
            plies = np.full(_GAMES_A_ROUND, ply, np.int32)
            game.step(batch, random_legal_actions(batch, keys, plies))
        for row in np.flatnonzero((batch.num_legal == 0) & (batch.reward == 1)):
            if lengths[row] >= num_plies:
                yield trail[lengths[row] - num_plies][row]


def _is_lost_in_two(game: Game, position: GameBatch) -> bool:
    """Whether every action of a batch of one can be answered by a win at once."""
    if not position.num_legal[0]:
        return False
    replies = _children(game, position)
    return all(
        replies.num_legal[row] and (_children(game, _row(replies, row)).reward == 1).any()
        for row in range(len(replies))
    )


def _children(game: Game, position: GameBatch) -> GameBatch:
    """Every position after one action of a batch of one."""
    count = int(position.num_legal[0])
    children = position.take(np.zeros(count, np.int64))
    game.step(children, position.legal_actions[0, :count].copy())
    return children


def _row(batch: GameBatch, row: int) -> GameBatch:
    return batch.take(np.array([row]))


def _one(game: Game, state: UInt64Array) -> GameBatch:
    batch = game.allocate(1)
    game.reset(batch, np.zeros(1, np.int64), state[None])
    return batch
