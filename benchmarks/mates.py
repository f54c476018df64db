"""How many mates a network finds with its search.

The positions come from random games, and every one is proved by trying all moves.
"""

from collections.abc import Iterator
from typing import Annotated, Final

import numpy as np
import typer

from benchmarks.harness import Report, benchmark
from chess_snn.api.network import load
from chess_snn.games.base import NO_ACTION, Game, GameBatch
from chess_snn.games.starts import random_legal_actions
from chess_snn.rng import derive_seed, random_words
from chess_snn.search import Search, make_search
from chess_snn.types import Int16Array, UInt64Array

_GAMES_A_ROUND: Final = 512
_MOST_RANDOM_PLIES: Final = 300
_BATCH: Final = 64
"""Positions that are searched at a time."""


def run(
    report: Report,
    model: Annotated[str, typer.Option(help="Campaign, model or file of the network.")],
    moves: Annotated[int, typer.Option(min=1, max=2, help="Of each mate.")] = 2,
    count: Annotated[int, typer.Option(min=1, help="Positions, all different.")] = 100,
    simulations: Annotated[int, typer.Option(help="Of each position.")] = 800,
    seed: Annotated[int, typer.Option(help="Of the positions.")] = 0,
) -> None:
    """How many mates a network finds with its search.

    python -m benchmarks mates --model campaigns/cpu-001
    """
    with load(model, game="chess") as net:
        game = net.rules
        report.note(net.name)
        search = make_search(
            game, net.evaluator, net.settings, simulations=simulations,
            num_games=min(count, _BATCH), in_play=True,
        )
        suite = forced_wins(game, count, moves, seed)
        solved = sum(num_solved(game, search, suite.take(rows), moves)
                     for rows in np.split(np.arange(count), range(_BATCH, count, _BATCH)))
    report.add(f"mates in {moves}, {simulations} simulations", solved / count, "share")


def forced_wins(game: Game, num_positions: int, num_moves: int, seed: int) -> GameBatch:
    """Different positions in which the side to move can force a win in ``num_moves`` (1 or 2)."""
    found: dict[bytes, UInt64Array] = {}
    for state in _shortly_before_wins(game, 2 * num_moves - 1, seed):
        if len(winning_actions(game, _batch_of(game, state[None]), num_moves)):
            found.setdefault(state.tobytes(), state)
        if len(found) == num_positions:
            break
    return _batch_of(game, np.stack(list(found.values())))


def winning_actions(game: Game, position: GameBatch, num_moves: int) -> Int16Array:
    """The actions of a batch of one that force a win in exactly ``num_moves``, by trying all."""
    children = _children(game, position)
    actions = position.legal_actions[0, : len(children)]
    wins_at_once = children.reward == 1
    if num_moves == 1 or wins_at_once.any():
        return actions[wins_at_once] if num_moves == 1 else actions[:0]
    forces = [_is_lost(game, children.take(np.array([row]))) for row in range(len(children))]
    return actions[np.array(forces, np.bool_)]


def num_solved(game: Game, search: Search, positions: GameBatch, num_moves: int) -> int:
    """How many of ``positions`` the search, without noise, answers with an action that wins."""
    rows = np.arange(len(positions))
    chosen = search.run(
        positions, rows.astype(np.uint64), np.zeros(len(rows), np.int32),
        np.zeros(len(rows), np.float32),
    ).actions
    return sum(
        bool(chosen[row] in winning_actions(game, positions.take(rows[[row]]), num_moves))
        for row in rows
    )


def _shortly_before_wins(game: Game, num_plies: int, seed: int) -> Iterator[UInt64Array]:
    """State rows ``num_plies`` before the end of random games that one side won; without end."""
    key = np.full(_GAMES_A_ROUND, derive_seed(seed, "forced_wins"), np.uint64)
    rows = np.arange(_GAMES_A_ROUND)
    for game_round in range(2**32):
        keys = random_words(key, (game_round * _GAMES_A_ROUND + rows).astype(np.uint64))
        batch = _batch_of(game, game.initial_states(keys))
        trail, lengths = [], np.zeros(_GAMES_A_ROUND, np.int64)
        for ply in range(_MOST_RANDOM_PLIES):
            trail.append(batch.state.copy())
            lengths += batch.num_legal > 0
            plies = np.full(_GAMES_A_ROUND, ply, np.int32)
            game.step(batch, random_legal_actions(batch, keys, plies))
        for row in np.flatnonzero((batch.num_legal == 0) & (batch.reward == 1)):
            if lengths[row] >= num_plies:
                yield trail[lengths[row] - num_plies][row]


def _is_lost(game: Game, position: GameBatch) -> bool:
    """Whether every action of a batch of one can be answered by a win at once."""
    replies = _children(game, position)
    wins = game.winning_actions(replies.state, replies.legal_actions, replies.num_legal)
    return len(replies) > 0 and bool((wins != NO_ACTION).all())


def _children(game: Game, position: GameBatch) -> GameBatch:
    """Every position after one action of a batch of one."""
    count = int(position.num_legal[0])
    children = position.take(np.zeros(count, np.int64))
    game.step(children, position.legal_actions[0, :count].copy())
    return children


def _batch_of(game: Game, states: UInt64Array) -> GameBatch:
    batch = game.allocate(len(states))
    game.reset(batch, np.arange(len(states)), states)
    return batch


command = benchmark("mates", run)
