"""The recorder sorts interleaved plies; checked against games collected one by one."""

from dataclasses import fields

import numpy as np

from chess_snn.data import GameRecords
from chess_snn.games import get_game
from chess_snn.search import SearchResult
from chess_snn.self_play.recorder import GameRecorder

GAME = get_game("chess")
LENGTHS = [3, 1, 4, 2, 5]


def test_interleaved_plies_become_whole_games_in_index_order():
    rng = np.random.default_rng(0)
    recorder = GameRecorder(len(LENGTHS), record_words=5)
    plies_of = [[] for _ in LENGTHS]
    for ply in range(max(LENGTHS)):
        # Rows come in any order, as they do when games that ended make room for later ones.
        games = rng.permutation([k for k, length in enumerate(LENGTHS) if ply < length])
        batch = GAME.allocate(len(games))
        batch.state[:] = rng.integers(2**64, size=batch.state.shape, dtype=np.uint64)
        targets = np.zeros(batch.legal_actions.shape, np.float32)
        for g in range(len(games)):
            slots = rng.choice(20, size=rng.integers(1, 6), replace=False)
            targets[g, slots] = rng.dirichlet(np.ones(len(slots)))
        result = SearchResult(
            actions=rng.integers(4672, size=len(games)).astype(np.int16),
            values_stm=rng.uniform(-1, 1, len(games)).astype(np.float32),
            policy_targets=targets,
            prior_entropies=np.zeros(len(games), np.float32),
        )
        for g, game in enumerate(games):
            slots = np.flatnonzero(targets[g])
            plies_of[game].append((
                batch.state[g, :5].copy(), result.actions[g], result.values_stm[g],
                batch.legal_actions[g, slots], targets[g, slots],
            ))
        recorder.add_ply(games, batch, result)
        batch.state[:] = 0  # the caller plays on in the same arrays
        games[:] = 0

    outcomes = np.array([1, 0, -1, 0, 1], np.int8)
    terminations = np.array([1, 0, 1, 2, 1], np.uint8)
    records = recorder.finish(outcomes, terminations)

    columns = list(zip(*(ply for plies in plies_of for ply in plies), strict=True))
    entries = [len(actions) for actions in columns[3]]
    expected = GameRecords(
        states=np.stack(columns[0]),
        actions=np.array(columns[1]),
        values_stm=np.array(columns[2]),
        target_offsets=np.cumsum([0, *entries]),
        target_actions=np.concatenate(columns[3]),
        target_weights=np.concatenate(columns[4]),
        game_offsets=np.cumsum([0, *LENGTHS]),
        outcomes_white=outcomes,
        terminations=terminations,
    )
    for field in fields(GameRecords):
        actual, wanted = getattr(records, field.name), getattr(expected, field.name)
        np.testing.assert_array_equal(actual, wanted, field.name)
        assert actual.dtype == wanted.dtype, field.name
