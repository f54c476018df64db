"""Simple won positions, which a network plays out against itself.

A network that draws its won games learns from them that nothing is ever won, and the share that it
converts shows so before the draw rate does.

Dimensions: n positions of a suite, G games, R rows of one batch of positions, W words a state row.
"""

from dataclasses import dataclass

import numpy as np

from chess_snn.errors import ConfigError
from chess_snn.evaluation.openings import distinct_states
from chess_snn.games.base import Game, GameBatch
from chess_snn.rng import generator
from chess_snn.search.base import Search
from chess_snn.settings import check_range
from chess_snn.types import BoolArray, Int16Array, Progress, UInt64Array

DEFAULT_POSITIONS = 32
DEFAULT_MAX_PLIES = 100
SUITE_SEED = 2024
"""The suite is the same for all campaigns and generations, so that its figures can be compared."""
_LEAST_ADVANTAGE = 5.0
"""Least advantage by the heuristic; in chess a rook, so that there are no endings of a pawn."""
_MAX_ROUNDS = 64
"""Rounds of drawing before giving up; a round draws four times as many positions as are wanted."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """Results of a suite of won positions; the counts add up to its size."""

    won: int
    """Games that the strong side won."""
    drawn: int
    """Games drawn by the rules."""
    lost: int
    truncated: int
    """Games that reached the ply limit."""
    mean_plies_to_win: float | None
    """Over the games won; None where there is none."""
    rate: float
    """Share won by the strong side, in [0, 1]."""


def conversion_rate(
    game: Game,
    search: Search,
    num_positions: int = DEFAULT_POSITIONS,
    max_plies: int = DEFAULT_MAX_PLIES,
    seed: int = SUITE_SEED,
    on_progress: Progress | None = None,
) -> Conversion:
    """Let ``search`` play both sides of every position of the suite, at temperature 0.

    Report ``.rate`` as the metric ``evaluation/conversion_rate``: the alarm "won positions are not
    converted" reads that name.

    Args:
        game: a game of two players.
        search: gets all positions in one batch, of ``num_positions`` at most; one half-move of
            each at a time.
        num_positions: size of the suite, n.
        max_plies: a game is truncated after this many half-moves, and is not converted.
        seed: of the suite; a longer suite begins with the shorter one.
        on_progress: called after every half-move with games finished and games in all.

    Raises:
        ConfigError: an argument is out of range, or the game has not that many such positions.
    """
    check_range("max_plies", max_plies, ge=1)
    suite = won_positions(game, num_positions, seed)
    white_is_strong = (game.heuristic_stm(suite) > 0) == (game.side_to_move(suite) == 0)
    scores = np.zeros(num_positions, dtype=np.int8)
    plies = np.full(num_positions, max_plies, dtype=np.int32)
    truncated = np.ones(num_positions, dtype=np.bool_)
    batch, live = game.allocate(num_positions), np.arange(num_positions)
    game.reset(batch, live, suite)
    for ply in range(max_plies):
        strong_to_move = (game.side_to_move(batch.state) == 0) == white_is_strong[live]
        game.step(batch, _choose(search, batch, ply))
        ended = batch.num_legal == 0
        scores[live[ended]] = _strong_rewards(batch, strong_to_move)[ended]
        plies[live[ended]], truncated[live[ended]] = ply + 1, False
        batch, live = batch.take(np.flatnonzero(~ended)), live[~ended]
        if on_progress is not None:
            on_progress(num_positions - len(live), num_positions)
        if not len(live):
            break
    won = scores > 0
    return Conversion(
        won=int(won.sum()),
        drawn=int(((scores == 0) & ~truncated).sum()),
        lost=int((scores < 0).sum()),
        truncated=int(truncated.sum()),
        mean_plies_to_win=float(plies[won].mean()) if won.any() else None,
        rate=int(won.sum()) / num_positions,
    )


def won_positions(game: Game, num_positions: int, seed: int = SUITE_SEED) -> UInt64Array:
    """The suite: distinct practice positions in which one side is ahead by 5 or more.

    Returns:
        uint64[num_positions, W]: state rows; either side may be to move, and none has ended.

    Raises:
        ConfigError: ``num_positions`` is below 1, or there are not that many.
    """
    check_range("num_positions", num_positions, ge=1)
    stream = generator(seed, "conversion")
    suite = np.empty((0, game.spec.state_words), dtype=np.uint64)
    for _ in range(_MAX_ROUNDS):
        seeds = stream.integers(0, 2**64, size=4 * num_positions, dtype=np.uint64)
        drawn = game.practice_states(seeds)
        drawn = drawn[np.abs(game.heuristic_stm(drawn)) >= _LEAST_ADVANTAGE]
        suite = distinct_states(np.concatenate([suite, drawn]))
        if len(suite) >= num_positions:
            return suite[:num_positions]
    raise ConfigError(
        f"found {len(suite)} won positions of {game.spec.name}, the conversion suite asks for "
        f"{num_positions}; ask for fewer"
    )


def _choose(search: Search, batch: GameBatch, ply: int) -> Int16Array:
    """Best actions of ``batch``; without temperature a search draws nothing from its streams."""
    num_games = len(batch)
    return search.run(
        batch, np.zeros(num_games, np.uint64), np.full(num_games, ply, np.int32),
        np.zeros(num_games, np.float32),
    ).actions


def _strong_rewards(batch: GameBatch, strong_moved: BoolArray) -> Int16Array:
    """Reward of the last step in each row for the strong side: 1, 0 or -1."""
    signs = np.where(strong_moved, 1.0, -1.0)
    rewards: Int16Array = np.sign(signs * batch.reward).astype(np.int16)
    return rewards
