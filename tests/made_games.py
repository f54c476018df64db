"""Game records and matches that are made up."""

from collections.abc import Sequence

import numpy as np

from chess_snn.data import GameRecords
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.games import get_game


def plain_records(lengths: Sequence[int], words: int = 5, **columns: object) -> GameRecords:
    """Games of so many plies; a column that is not given holds zeros, a target one action."""
    num_positions, num_games = sum(lengths), len(lengths)
    dtypes = {
        "actions": np.int16, "values_stm": np.float32, "surprises": np.float32,
        "target_actions": np.int16, "outcomes_white": np.int8, "terminations": np.uint8,
        "cut_values_white": np.float32, "start_kinds": np.uint8,
    }
    of_games = {"outcomes_white", "terminations", "cut_values_white", "start_kinds"}
    plain = {
        name: np.zeros(num_games if name in of_games else num_positions, dtype)
        for name, dtype in dtypes.items()
    }
    given = {name: np.asarray(column, dtypes.get(name)) for name, column in columns.items()}
    return GameRecords(**plain | {
        "states": np.zeros((num_positions, words), np.uint64),
        "target_offsets": np.arange(num_positions + 1, dtype=np.int64),
        "target_weights": np.ones(num_positions, np.float32),
        "game_offsets": np.cumsum([0, *lengths], dtype=np.int64),
    } | given)


def made_match(
    scores: np.ndarray, player_a: str = "a", player_b: str = "b", *, openings: Sequence[int] = (),
    plies: int = 1, **more: object,
) -> MatchResult:
    """A match of chess whose games have so many plies.

    scores: float[openings, 2], of player a with white and with black; NaN where a game is void.
    openings: their numbers in the book; by default the first ones.
    """
    scores = np.asarray(scores, np.float32)
    count, num_games = len(scores), scores.size
    keys = tuple(f"book:{number:04d}" for number in openings or range(count))
    return MatchResult(
        spec=get_game("chess").spec, player_a=player_a, player_b=player_b, opening_keys=keys,
        opening_positions=keys, scores_a=scores.ravel(),
        terminations=np.ones(num_games, np.uint8), plies=np.full(num_games, plies, np.int32),
        actions=np.zeros(plies * num_games, np.int16), **more,
    )


def scores_of(points: Sequence[float]) -> np.ndarray:
    """Scores with white and with black that make so many points an opening, from 0 to 2."""
    return np.array([(min(1.0, each), max(0.0, each - 1.0)) for each in points])
