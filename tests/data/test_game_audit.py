"""Games that can have been played pass; anything changed in one of them is found in it alone."""

from dataclasses import replace

import numpy as np
import pytest
from made_games import plain_records
from made_records import make_records
from stored_shards import damage, edit_manifest

from benchmarks.random_data import play_random_games, with_search_targets
from chess_snn.data import concatenate, write_shard
from chess_snn.data.audit import audit_shards, game_faults
from chess_snn.data.manifest import MANIFEST_NAME
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
    one_ply = plain_records(
        [1] * len(starts), states=batch.state[:, : GAME.spec.record_words].copy(),
        actions=actions, target_actions=actions,
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


def test_an_illegal_action_is_found(records):
    row = row_of(records, 11, 4)
    legal, num_legal = GAME.legal_actions(records.states[row : row + 1])
    illegal = np.setdiff1d(np.arange(GAME.spec.num_actions), legal[0, : num_legal[0]])
    for action in (*illegal[:3], *illegal[-3:]):
        faults = game_faults(GAME, changed(records, "actions", row, action))
        assert set(faults) == {11}
        assert f"{action} at ply 4" in faults[11]


def test_another_legal_action_leads_elsewhere(records):
    row = row_of(records, 11, 4)
    legal, num_legal = GAME.legal_actions(records.states[row : row + 1])
    other = next(a for a in legal[0, : num_legal[0]] if a != records.actions[row])
    faults = game_faults(GAME, changed(records, "actions", row, other))
    assert set(faults) == {11}
    assert "ply 5" in faults[11]


def test_an_illegal_entry_of_a_policy_target_is_found(records):
    row = row_of(records, 2, 6)
    entry = int(records.target_offsets[row + 1]) - 1
    legal, num_legal = GAME.legal_actions(records.states[row : row + 1])
    illegal = np.setdiff1d(np.arange(GAME.spec.num_actions), legal[0, : num_legal[0]])[0]
    faults = game_faults(GAME, changed(records, "target_actions", entry, illegal))
    assert set(faults) == {2}
    assert "ply 6" in faults[2]


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


NUM_GAMES = 6


@pytest.fixture(scope="module")
def audited():
    return play_random_games(GAME, NUM_GAMES, 40)


def test_whole_shards_are_counted(tmp_path, audited):
    folders = [tmp_path / f"shard-{k}" for k in range(3)]
    for folder in folders:
        write_shard(folder, audited, {"game": "chess", "place": folder.name})
    for folder, audit in zip(folders, audit_shards(GAME, folders), strict=True):
        assert (audit.verdict, audit.fault) == ("whole", "")
        assert (audit.num_games, audit.num_positions) == (NUM_GAMES, audited.num_positions)
        assert audit.meta["place"] == folder.name


def test_each_shard_is_judged_alone(tmp_path, audited):
    """A damaged one, one of illegal games, one of another game, and one that is no shard."""
    illegal = audited.actions.copy()
    illegal[audited.game_offsets[[1, 4]]] = GAME.spec.num_actions - 1
    shards = {
        "whole": (audited, "chess"), "damaged": (audited, "chess"),
        "illegal": (replace(audited, actions=illegal), "chess"), "other": (audited, "go"),
        "last": (audited, "chess"),
    }
    for name, (games, game) in shards.items():
        write_shard(tmp_path / name, games, {"game": game})
    damage(tmp_path / "damaged")
    (tmp_path / "empty").mkdir()
    names = [*shards, "empty"]
    audits = dict(zip(names, audit_shards(GAME, [tmp_path / n for n in names]), strict=True))
    assert [name for name, audit in audits.items() if audit.verdict == "whole"] == ["whole", "last"]
    assert "damaged: " in audits["damaged"].fault
    assert all(game in audits["illegal"].fault for game in ("game 1: ", "game 4: "))
    assert "go" in audits["other"].fault
    assert MANIFEST_NAME in audits["empty"].fault


def test_games_that_nobody_played_are_found_and_counted(tmp_path):
    made_up = make_records(np.random.default_rng(1), [3] * 20)
    write_shard(tmp_path / "shard", made_up, {"game": "chess"})
    (audit,) = audit_shards(GAME, [tmp_path / "shard"])
    assert audit.verdict == "damaged"
    assert audit.fault.count("game ") == 3
    assert " 17 " in audit.fault


def test_a_shard_of_another_version_is_told_from_a_damaged_one(tmp_path, audited):
    write_shard(tmp_path / "shard", audited, {"game": "chess"})
    edit_manifest(tmp_path / "shard", lambda body: body["meta"].update(shard_version=99))
    (audit,) = audit_shards(GAME, [tmp_path / "shard"])
    assert audit.verdict == "unknown version"
    assert "version 99" in audit.fault
