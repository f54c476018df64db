"""Games that can have been played pass; anything changed in one of them is found in it alone."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.random_data import play_random_games, with_search_targets
from chess_snn.data import concatenate
from chess_snn.data.audit import game_faults
from chess_snn.games import ONGOING, get_game
from chess_snn.games.chess.layout import FULLMOVE_SHIFT, META, REPETITIONS_SHIFT

GAME = get_game("chess")
CHECKMATE = GAME.spec.terminations.index("checkmate")
PLY_LIMIT = 400
"""Long enough for random games to end in every way."""


@pytest.fixture(scope="module")
def records():
    return with_search_targets(GAME, play_random_games(GAME, 48, PLY_LIMIT))


def changed(records, name, index, value):
    column = getattr(records, name).copy()
    column[index] = value
    return replace(records, **{name: column})


def row_of(records, game, ply):
    return int(records.game_offsets[game]) + ply


def test_played_games_have_no_fault(records):
    assert set(records.terminations) >= {ONGOING, CHECKMATE}, "too few kinds of endings"
    assert game_faults(GAME, records) == {}


def test_games_from_anywhere_have_no_fault(records):
    """From the middle of games, whose clocks and move numbers are not those of a beginning."""
    starts = [row_of(records, game, 20) for game in range(10)]
    batch = GAME.allocate(len(starts))
    GAME.reset(batch, np.arange(len(starts)), records.states[starts])
    actions = batch.legal_actions[:, 0].copy()
    n = len(starts)
    one_ply = replace(
        records,
        states=batch.state[:, : GAME.spec.record_words].copy(), actions=actions,
        values_stm=np.zeros(n, np.float32), surprises=np.zeros(n, np.float32),
        target_offsets=np.arange(n + 1), target_actions=actions,
        target_weights=np.ones(n, np.float32), game_offsets=np.arange(n + 1),
        outcomes_white=np.zeros(n, np.int8), terminations=np.zeros(n, np.uint8),
        cut_values_white=np.zeros(n, np.float32), start_kinds=np.zeros(n, np.uint8),
    )
    assert game_faults(GAME, one_ply) == {}
    assert game_faults(GAME, concatenate([records, one_ply])) == {}


def test_a_changed_position_is_found_in_its_game_alone(records):
    for word in range(GAME.spec.record_words):
        row = row_of(records, 7, 5)
        damaged = changed(
            records, "states", (row, word), records.states[row, word] ^ np.uint64(1 << 20)
        )
        faults = game_faults(GAME, damaged)
        assert set(faults) == {7}
        assert "ply 5" in faults[7]


@pytest.mark.parametrize("bits", [
    pytest.param(np.uint64(1) << REPETITIONS_SHIFT, id="repetitions"),
    pytest.param(np.uint64(1) << FULLMOVE_SHIFT, id="move number"),
])
def test_a_changed_counter_of_the_first_position_is_found(records, bits):
    row = row_of(records, 3, 0)
    damaged = changed(records, "states", (row, META), records.states[row, META] ^ bits)
    assert set(game_faults(GAME, damaged)) == {3}


def test_noise_in_place_of_a_first_position_reaches_no_rules(records):
    rng = np.random.default_rng(0)
    for game in range(records.num_games):
        noise = rng.integers(2**64, size=GAME.spec.record_words, dtype=np.uint64)
        faults = game_faults(GAME, changed(records, "states", row_of(records, game, 0), noise))
        assert set(faults) == {game}
        assert "it begins at" in faults[game]


def test_an_illegal_action_is_found(records):
    row = row_of(records, 11, 4)
    legal, num_legal = GAME.legal_actions(records.states[row : row + 1])
    illegal = np.setdiff1d(np.arange(GAME.spec.num_actions), legal[0, : num_legal[0]])
    for action in (*illegal[:3], *illegal[-3:]):
        faults = game_faults(GAME, changed(records, "actions", row, action))
        assert faults == {11: f"action {action} at ply 4 is illegal"}


def test_another_legal_action_leads_elsewhere(records):
    row = row_of(records, 11, 4)
    legal, num_legal = GAME.legal_actions(records.states[row : row + 1])
    other = next(a for a in legal[0, : num_legal[0]] if a != records.actions[row])
    faults = game_faults(GAME, changed(records, "actions", row, other))
    assert set(faults) == {11}
    assert "the position at ply 5" in faults[11]


def test_an_illegal_entry_of_a_policy_target_is_found(records):
    row = row_of(records, 2, 6)
    entry = int(records.target_offsets[row + 1]) - 1
    legal, num_legal = GAME.legal_actions(records.states[row : row + 1])
    illegal = np.setdiff1d(np.arange(GAME.spec.num_actions), legal[0, : num_legal[0]])[0]
    faults = game_faults(GAME, changed(records, "target_actions", entry, illegal))
    assert faults == {2: "the policy target at ply 6 has an illegal action"}


def test_endings_and_results_are_those_of_the_rules(records):
    mated = int(np.flatnonzero(records.terminations == CHECKMATE)[0])
    cut = int(np.flatnonzero(records.terminations == ONGOING)[0])
    winner = records.outcomes_white[mated]
    for name, game, value in (
        ("outcomes_white", mated, -winner), ("outcomes_white", mated, 0),
        ("terminations", mated, ONGOING), ("terminations", cut, CHECKMATE),
    ):
        assert set(game_faults(GAME, changed(records, name, game, value))) == {game}


def test_a_resigned_game_may_have_any_result(records):
    cut = int(np.flatnonzero(records.terminations == ONGOING)[0])
    for outcome in (-1, 0, 1):
        assert game_faults(GAME, changed(records, "outcomes_white", cut, outcome)) == {}


def test_a_game_that_goes_on_after_its_end_is_found(records):
    """Two games as one: the second begins after the first has ended."""
    mated = int(np.flatnonzero(records.terminations[:-1] == CHECKMATE)[0])
    joined = replace(
        records,
        game_offsets=np.delete(records.game_offsets, mated + 1),
        outcomes_white=np.delete(records.outcomes_white, mated),
        terminations=np.delete(records.terminations, mated),
        cut_values_white=np.delete(records.cut_values_white, mated),
        start_kinds=np.delete(records.start_kinds, mated),
    )
    assert set(game_faults(GAME, joined)) == {mated}
