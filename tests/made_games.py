"""Game records that are made up."""

from collections.abc import Sequence

import numpy as np

from chess_snn.data import GameRecords


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
