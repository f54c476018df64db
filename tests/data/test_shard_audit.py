from dataclasses import replace

import numpy as np
import pytest
from made_records import make_records
from stored_shards import damage, edit_manifest

from benchmarks.random_data import play_random_games
from chess_snn.data import write_shard
from chess_snn.data.audit import audit_shards
from chess_snn.data.manifest import MANIFEST_NAME
from chess_snn.games import get_game

GAME = get_game("chess")
NUM_GAMES = 6


@pytest.fixture(scope="module")
def records():
    return play_random_games(GAME, NUM_GAMES, 40)


def test_whole_shards_are_counted(tmp_path, records):
    folders = [tmp_path / f"shard-{k}" for k in range(3)]
    for folder in folders:
        write_shard(folder, records, {"game": "chess", "place": folder.name})
    for folder, audit in zip(folders, audit_shards(GAME, folders), strict=True):
        assert (audit.verdict, audit.fault) == ("whole", "")
        assert (audit.num_games, audit.num_positions) == (NUM_GAMES, records.num_positions)
        assert audit.meta["place"] == folder.name


def test_each_shard_is_judged_alone(tmp_path, records):
    """A damaged one, one of illegal games, one of another game, and one that is no shard."""
    illegal = records.actions.copy()
    illegal[records.game_offsets[[1, 4]]] = GAME.spec.num_actions - 1
    shards = {
        "whole": (records, "chess"), "damaged": (records, "chess"),
        "illegal": (replace(records, actions=illegal), "chess"), "other": (records, "go"),
        "last": (records, "chess"),
    }
    for name, (games, game) in shards.items():
        write_shard(tmp_path / name, games, {"game": game})
    damage(tmp_path / "damaged")
    (tmp_path / "empty").mkdir()
    names = [*shards, "empty"]
    audits = dict(zip(names, audit_shards(GAME, [tmp_path / n for n in names]), strict=True))
    assert [name for name, audit in audits.items() if audit.verdict == "whole"] == ["whole", "last"]
    assert "damaged: must have SHA-256" in audits["damaged"].fault
    assert "game 1: action 4671 at ply 0 is illegal; game 4: action" in audits["illegal"].fault
    assert "holds go records of 5 words, and chess records" in audits["other"].fault
    assert MANIFEST_NAME in audits["empty"].fault


def test_games_that_nobody_played_are_found_and_counted(tmp_path):
    made_up = make_records(np.random.default_rng(1), [3] * 20)
    write_shard(tmp_path / "shard", made_up, {"game": "chess"})
    (audit,) = audit_shards(GAME, [tmp_path / "shard"])
    assert audit.verdict == "damaged"
    assert audit.fault.count("it begins at") == 3
    assert audit.fault.endswith("; and 17 more games")


def test_a_shard_of_another_version_is_told_from_a_damaged_one(tmp_path, records):
    write_shard(tmp_path / "shard", records, {"game": "chess"})
    edit_manifest(tmp_path / "shard", lambda body: body["meta"].update(shard_version=99))
    (audit,) = audit_shards(GAME, [tmp_path / "shard"])
    assert audit.verdict == "unknown version"
    assert "shard version 99 is unknown" in audit.fault
