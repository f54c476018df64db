"""Random games as records: what an export is made from."""

import numpy as np
from hypothesis import strategies as st
from made_games import plain_records

from chess_snn.data import START_KINDS
from chess_snn.games import ONGOING, get_game
from chess_snn.games.starts import random_legal_actions, random_starts

GAME = get_game("chess")

COLUMNS = (
    "states", "actions", "target_actions", "target_weights", "game_offsets", "outcomes_white",
    "terminations", "cut_values_white", "start_kinds", "values_stm", "surprises",
)
"""Columns that import and export keep: all that an imported record has."""


def random_records(num_games, max_plies, seed, start_plies=0):
    """Games of random moves; about a third of those without an end on the board are won."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(2**63, size=num_games, dtype=np.uint64)
    begun = rng.integers(start_plies + 1, size=num_games, dtype=np.int32)
    batch = GAME.allocate(num_games)
    GAME.reset(batch, np.arange(num_games), random_starts(GAME, keys, begun))
    caps = rng.integers(1, max_plies + 1, size=num_games)
    columns = [([], []) for _ in range(num_games)]
    reward, white_moved = np.zeros(num_games), np.zeros(num_games, bool)
    for ply in range(max_plies):
        plies = np.full(num_games, ply, np.int32)
        actions = random_legal_actions(batch, keys + np.uint64(1), plies)
        actions[caps <= ply] = -1
        playing = np.flatnonzero(actions >= 0)
        if not playing.size:
            break
        white_moved[playing] = GAME.side_to_move(batch.state[playing]) == 0
        for g in playing:
            columns[g][0].append(batch.state[g, :GAME.spec.record_words].copy())
            columns[g][1].append(actions[g])
        GAME.step(batch, actions)
        reward[playing] = batch.reward[playing]
    outcomes = np.where(white_moved, reward, -reward).astype(np.int8)
    is_open = batch.termination == ONGOING
    outcomes[is_open] = rng.integers(-1, 2, size=int(is_open.sum()))
    is_cut = is_open & (outcomes == 0)
    cut_values = np.where(is_cut, rng.uniform(-1, 1, num_games), 0).astype(np.float16)
    is_initial = begun == 0
    return _join(
        columns, outcomes, batch.termination.copy(), cut_values.astype(np.float32),
        np.where(is_initial, 0, rng.integers(len(START_KINDS), size=num_games)).astype(np.uint8),
    )


def _join(columns, outcomes, terminations, cut_values, start_kinds):
    states = np.array([row for rows, _ in columns for row in rows], np.uint64)
    actions = np.array([action for _, played in columns for action in played], np.int16)
    lengths = np.array([len(played) for _, played in columns])
    values = np.repeat(outcomes.astype(np.float32), lengths)
    values = np.where(GAME.side_to_move(states) == 0, values, -values)
    return plain_records(
        lengths, states=states, actions=actions, values_stm=values, target_actions=actions.copy(),
        outcomes_white=outcomes, terminations=terminations, cut_values_white=cut_values,
        start_kinds=start_kinds,
    )


@st.composite
def any_played_records(draw):
    return random_records(
        draw(st.integers(1, 8)), draw(st.sampled_from([1, 6, 40, 300])),
        seed=draw(st.integers(0, 2**32)), start_plies=draw(st.sampled_from([0, 3, 30])),
    )
