"""Programs that run in another process while a test kills or starves it."""

import itertools
import resource
from pathlib import Path

import numpy as np
from made_records import assert_same_records, make_records

from chess_snn.data import read_shard, write_shard
from chess_snn.errors import UsageError


def records_of(index):
    return make_records(np.random.default_rng(index), [60] * 40, max_entries=8)


def write_for_ever(parent):
    for index in itertools.count():
        write_shard(Path(parent, f"shard-{index:04d}"), records_of(index), {"game": "chess"})


def write_under_limit(parent, max_file_bytes, answer):
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    try:
        write_shard(Path(parent, "shard-0001"), records_of(1), {"game": "chess"})
    except UsageError as error:
        answer.send(str(error))
    else:
        answer.send("written")


def fill_disk(parent):
    """Write until the disk is full; print the error and how many intact shards are all there is."""
    try:
        write_for_ever(parent)
    except UsageError as error:
        print(error)
    names = sorted(path.name for path in Path(parent).iterdir())
    assert names == [f"shard-{index:04d}" for index in range(len(names))]
    for index, name in enumerate(names):
        assert_same_records(read_shard(Path(parent, name))[0], records_of(index), exact=False)
    print(len(names))
