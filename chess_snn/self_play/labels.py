"""Labels of recorded games: a teacher's policy and value take the place of a search's.

Moves and results stay as they were.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Final

import numpy as np

from chess_snn.data import GameRecords, state_rows
from chess_snn.games import Game
from chess_snn.games.base import GameBatch
from chess_snn.search import SearchResult
from chess_snn.self_play.group import GameRecorder
from chess_snn.types import Int64Array, Progress

POSITIONS_AT_ONCE: Final = 512
"""Positions of a teacher's call; an engine may keep what it saw from one to the next."""

Teacher = Callable[[GameBatch], SearchResult]
"""Labels positions that have not ended: ``policy_targets`` and ``values_stm`` are kept."""


def label_records(
    game: Game, records: GameRecords, games: slice, teachers: Sequence[Teacher],
    on_progress: Progress | None = None,
) -> GameRecords:
    """The ``games`` of ``records`` with targets and values of ``teachers``, and no surprises.

    Equal teachers label side by side; which of them labels a position does not matter. A position
    that is drawn by rule, where an imported game went on, keeps what it has. ``on_progress`` is
    called with (games labelled, games in all).
    """
    num_games = games.stop - games.start
    recorder = GameRecorder(num_games, game.spec.record_words, game.spec.value_range)
    first, end = records.game_offsets[[games.start, games.stop]]
    lengths = np.diff(records.game_offsets[games.start : games.stop + 1])
    game_of = np.repeat(np.arange(num_games), lengths)
    free: SimpleQueue[Teacher] = SimpleQueue()
    for each in teachers:
        free.put(each)

    def label(rows: Int64Array) -> tuple[GameBatch, SearchResult]:
        batch = game.allocate(len(rows))
        game.reset(batch, np.arange(len(rows)), state_rows(game.spec, records.states[rows]))
        teacher = free.get()
        try:
            return batch, _labels(records, rows, batch, teacher)
        finally:
            free.put(teacher)

    starts = range(POSITIONS_AT_ONCE, end - first, POSITIONS_AT_ONCE)
    parts = np.split(np.arange(first, end), starts)
    with ThreadPoolExecutor(len(teachers)) as pool:
        for rows, (batch, said) in zip(parts, pool.map(label, parts), strict=True):
            recorder.add_ply(game_of[rows - first], batch, said)
            if on_progress is not None:
                on_progress(int(game_of[rows[-1] - first]) + 1, num_games)
    return recorder.finish(
        outcomes_white=records.outcomes_white[games],
        terminations=records.terminations[games],
        cut_values_white=records.cut_values_white[games],
        start_kinds=records.start_kinds[games],
    )


def _labels(
    records: GameRecords, rows: Int64Array, batch: GameBatch, teacher: Teacher
) -> SearchResult:
    live = np.flatnonzero(batch.num_legal)
    over = np.flatnonzero(batch.num_legal == 0)
    actions, values = records.actions[rows], records.values_stm[rows]
    targets = np.zeros(batch.legal_actions.shape, np.float32)
    batch.legal_actions[over, 0], targets[over, 0] = actions[over], 1.0
    if len(live):
        said = teacher(batch.take(live))
        targets[live], values[live] = said.policy_targets, said.values_stm
    nothing = np.zeros(len(rows), np.float32)
    return SearchResult(actions, values, targets, nothing, nothing)
