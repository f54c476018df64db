import dataclasses
import math

import numpy as np
import pytest
from made_records import make_records

from chess_snn.data import read_shard, restart_states, write_shard
from chess_snn.errors import ConfigError, CorruptDataError, UsageError
from chess_snn.games import get_game

SPEC = get_game("chess").spec

LENGTHS = ([40, 12, 13, 3], [30, 80])


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Positions name themselves in word 0: shard, then row."""
    folders = []
    for index, lengths in enumerate(LENGTHS):
        records = make_records(np.random.default_rng(index), lengths)
        records.states[:, 0] = (index << 32) + np.arange(records.num_positions)
        folders.append(tmp_path_factory.mktemp("games") / f"shard-{index}")
        write_shard(folders[-1], records, {"game": "chess"})
    return folders


def contested(shards, value_limit):
    """The definition, one position at a time."""
    names = []
    for folder in shards:
        records, _ = read_shard(folder)
        for start, stop in zip(records.game_offsets, records.game_offsets[1:], strict=False):
            names += [
                int(records.states[row, 0]) for row in range(start + 8, stop - 4)
                if -value_limit <= records.values_stm[row] <= value_limit
            ]
    return names


@pytest.mark.parametrize("value_limit", [0.0, 0.3, 0.8, 1.0])
def test_all_contested_positions_are_there_when_the_limit_allows(shards, value_limit):
    states = restart_states(SPEC, shards, value_limit, limit=1000, seed=1)
    assert states[:, 0].tolist() == contested(shards, value_limit)
    assert (states.dtype, states.shape[1]) == (np.uint64, 5)


def test_rows_are_whole_records(shards):
    every = {int(row[0]): row for folder in shards for row in read_shard(folder)[0].states}
    for state in restart_states(SPEC, shards, 0.8, limit=1000, seed=1):
        np.testing.assert_array_equal(state, every[int(state[0])])


def test_a_limit_draws_without_replacement_and_by_the_seed_alone(shards):
    names = contested(shards, 1.0)
    drawn, again, other = (
        restart_states(SPEC, shards, 1.0, limit=20, seed=seed)[:, 0].tolist() for seed in (1, 1, 2)
    )
    assert drawn == again != other
    assert len(set(drawn)) == 20
    assert set(drawn) < set(names)


def test_every_contested_position_is_drawn_equally_often(shards):
    names = contested(shards[1:], 1.0)
    draws, limit = 100, 20
    counts = dict.fromkeys(names, 0)
    for seed in range(draws):
        for name in restart_states(SPEC, shards[1:], 1.0, limit, seed)[:, 0].tolist():
            counts[name] += 1
    share = limit / len(names)
    sigma = math.sqrt(draws * share * (1 - share))
    assert max(abs(count - draws * share) for count in counts.values()) < 5 * sigma


def test_no_contested_position_gives_no_rows(tmp_path):
    records = make_records(np.random.default_rng(0), [12, 5])
    write_shard(tmp_path / "shard", records, {"game": "chess"})
    assert restart_states(SPEC, [tmp_path / "shard"], 1.0, 10, 0).shape == (0, 5)


def test_bad_input_is_refused(shards, tmp_path):
    with pytest.raises(UsageError):
        restart_states(SPEC, [], 0.8, 10, 0)
    with pytest.raises(ConfigError, match=r"restarts\.value_limit .*1\.1"):
        restart_states(SPEC, shards, 1.1, 10, 0)
    with pytest.raises(ConfigError, match=r"restarts\.limit"):
        restart_states(SPEC, shards, 0.8, 0, 0)
    records = make_records(np.random.default_rng(0), [20])
    wider = dataclasses.replace(records, states=np.zeros((20, 6), np.uint64))
    write_shard(tmp_path / "wider", wider, {"game": "go"})
    with pytest.raises(UsageError, match="wider .*go .*6 .*5"):
        restart_states(SPEC, [*shards, tmp_path / "wider"], 0.8, 10, 0)
    (tmp_path / "wider").write_bytes(b"")
    with pytest.raises(CorruptDataError, match="wider"):
        restart_states(SPEC, [tmp_path / "wider"], 0.8, 10, 0)
