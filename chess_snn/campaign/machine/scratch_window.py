"""A replay window for training that is only timed or tried."""

import tempfile
from pathlib import Path
from typing import Final

from chess_snn.data import GameRecords, ReplayWindow, write_shard
from chess_snn.games import Game

_NONE_HELD_OUT: Final = 1_000_000


def scratch_window(game: Game, records: GameRecords) -> ReplayWindow:
    """The window of ``records`` and nothing else, none held out; nothing stays on the disk."""
    with tempfile.TemporaryDirectory() as scratch:
        shard = Path(scratch) / "shard"
        write_shard(shard, records, {"game": game.spec.name})
        return ReplayWindow.load(
            game, [shard], capacity=records.num_positions, holdout_every=_NONE_HELD_OUT
        )
