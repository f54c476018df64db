"""Whether the games of a match can have been played: each is replayed by the rules of its game."""

import json
from typing import Final

import numpy as np

from chess_snn.errors import PositionError
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.solo import chance_words, seeds_of_keys
from chess_snn.games.base import NO_ACTION, ONGOING, Game, GameBatch
from chess_snn.types import BoolArray, Float64Array, Json, UInt64Array

_BY_FORMULA: Final = frozenset({"score_low", "score_high", "points"})
"""Figures that are not compared: matches of earlier versions have intervals by another formula, and
its last digits depend on the processor. The digest of the file protects them, and the points of
every game are compared."""


def match_fault(game: Game, result: MatchResult, body: Json) -> str | None:
    """What is wrong with a match, in words; None where nothing is.

    Every game begins at its opening, its moves are legal, the rules end it as is recorded, and the
    figures are those of the games.

    Args:
        game: of the match.
        result: the match.
        body: where it was read from; what it says of the match as a whole is compared.
    """
    summary = json.loads(json.dumps(result.summary()))
    compared = summary.keys() - _BY_FORMULA
    if wrong := sorted(name for name in compared if body.get(name) != summary[name]):
        return f"{', '.join(wrong)} are not those of its games"
    try:
        openings = np.array([game.parse_state(text) for text in result.opening_positions])
        seeds = seeds_of_keys(result.opening_keys) if result.is_solo else None
    except (PositionError, ValueError) as error:
        return f"an opening is no position: {error}"
    if seeds is not None and not np.array_equal(game.initial_states(seeds), openings):
        return "an opening is not the start of its seed"
    batch = game.allocate(result.num_games)
    game.reset(batch, np.arange(result.num_games), openings[result.opening_index])
    rewards = np.zeros(result.num_games)
    game_seeds = None if seeds is None else seeds[result.opening_index]
    return (
        _replay_fault(game, result, batch, rewards, game_seeds)
        or _end_fault(game, result, batch, rewards)
    )


def _replay_fault(
    game: Game, result: MatchResult, batch: GameBatch, rewards: Float64Array,
    seeds: UInt64Array | None,
) -> str | None:
    """Play every game in ``batch``; ``rewards`` float64[n] become the first player's sums.

    ``seeds`` uint64[n] decide the chance events of a game of one player.
    """
    firsts = result.game_offsets[:-1]
    for ply in range(int(result.plies.max(initial=0))):
        is_on = result.plies > ply
        actions = np.full(result.num_games, NO_ACTION, np.int16)
        actions[is_on] = result.actions[firsts[is_on] + ply]
        if (fault := _first(is_on & (batch.termination != ONGOING))) is not None:
            return f"game {fault} goes on at ply {ply}, after its end"
        if (fault := _first(is_on & ~batch.lists(actions))) is not None:
            return f"game {fault}: action {actions[fault]} at ply {ply} is illegal"
        sign = np.where(game.side_to_move(batch.state) == 0, 1, -1)
        chance = None
        if seeds is not None and game.spec.is_stochastic:
            chance = chance_words(seeds, np.full(len(seeds), ply, np.int32))
        game.step(batch, actions, chance)
        rewards[is_on] += sign[is_on] * batch.reward[is_on]
    return None


def _end_fault(
    game: Game, result: MatchResult, batch: GameBatch, rewards: Float64Array
) -> str | None:
    if (fault := _first(batch.termination != result.terminations)) is not None:
        return f"by the rules game {fault} ends otherwise"
    if result.is_solo:
        return _points_fault(game, result, batch, rewards)
    by_rule = batch.termination != ONGOING
    if (fault := _first(by_rule & (result.outcomes_white != np.sign(rewards)))) is not None:
        return f"game {fault} has another result by the rules"
    return None


def _points_fault(
    game: Game, result: MatchResult, batch: GameBatch, rewards: Float64Array
) -> str | None:
    if (fault := _first(result.points != game.spec.score_unit * rewards)) is not None:
        return f"game {fault} has other points by the rules"
    if (fault := _first(result.milestones != game.milestones(batch.state))) is not None:
        return f"game {fault} got to another milestone"
    signs = np.where(result.a_is_white, 1.0, -1.0)
    ahead = np.bincount(result.opening_index, weights=signs * result.points)
    wanted = 0.5 + 0.5 * np.sign(ahead)[result.opening_index]
    if (fault := _first(result.scores_a != wanted)) is not None:
        return f"game {fault} does not score what the points of its seed say"
    return None


def _first(is_wrong: BoolArray) -> int | None:
    found = np.flatnonzero(is_wrong)
    return int(found[0]) if len(found) else None
