"""Whether the games of a match can have been played: each is replayed by the rules of its game."""

import json
from typing import Final

import numpy as np

from chess_snn.errors import PositionError
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.games.base import NO_ACTION, ONGOING, Game, GameBatch
from chess_snn.types import BoolArray, Int8Array, Json

_BY_FORMULA: Final = frozenset({"score_low", "score_high"})
"""Figures that are not compared: matches of earlier versions have intervals by another formula, and
its last digits depend on the processor. The digest of the file protects them."""


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
    except PositionError as error:
        return f"an opening is no position: {error}"
    batch = game.allocate(result.num_games)
    game.reset(batch, np.arange(result.num_games), openings[result.opening_index])
    winners = np.zeros(result.num_games, np.int8)
    return _replay_fault(game, result, batch, winners) or _end_fault(result, batch, winners)


def _replay_fault(
    game: Game, result: MatchResult, batch: GameBatch, winners: Int8Array
) -> str | None:
    """Play every game in ``batch``; ``winners`` int8[n] become 1 where the first player won."""
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
        game.step(batch, actions)
        has_won = is_on & (batch.reward > 0)
        winners[has_won] = sign[has_won]
    return None


def _end_fault(result: MatchResult, batch: GameBatch, winners: Int8Array) -> str | None:
    if (fault := _first(batch.termination != result.terminations)) is not None:
        return f"by the rules game {fault} ends otherwise"
    by_rule = batch.termination != ONGOING
    if (fault := _first(by_rule & (result.outcomes_white != winners))) is not None:
        return f"game {fault} has another result by the rules"
    return None


def _first(is_wrong: BoolArray) -> int | None:
    found = np.flatnonzero(is_wrong)
    return int(found[0]) if len(found) else None
