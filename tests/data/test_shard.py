import dataclasses
import json
import math
import multiprocessing
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import zarr
import zstandard
from hypothesis import given, settings
from made_records import any_records, assert_same_records, make_records
from shard_writers import records_of, write_for_ever, write_under_limit
from stored_shards import forge, forge_files, zipped_part
from waiting import wait_for
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

from chess_snn.data import (
    GameRecords,
    archive,
    concatenate,
    read_folder,
    read_manifest,
    read_shard,
    sweep_temporaries,
    verify_folder,
    write_shard,
)
from chess_snn.data.arrays import decode_arrays, encode_arrays
from chess_snn.data.records import STORED_COLUMNS, StoredColumn, from_columns, to_columns
from chess_snn.errors import (
    CorruptDataError,
    DamagedFolderError,
    UnknownVersionError,
    UsageError,
)

META = {"game": "chess", "iteration": 3}


@pytest.fixture
def records():
    return make_records(np.random.default_rng(1), [5, 30, 1, 14])


@pytest.fixture
def shard(tmp_path, records):
    folder = tmp_path / "iter-000003" / "shard-0000"
    write_shard(folder, records, META)
    return folder


@given(any_records())
def test_columns_hold_everything_to_float16(records):
    read = from_columns(to_columns(records))
    assert_same_records(read, records, exact=False)
    sums = np.add.reduceat(read.target_weights, read.target_offsets[:-1])
    np.testing.assert_allclose(sums, 1, atol=1e-6)
    assert (read.target_weights > 0).all()
    is_alone = np.diff(read.target_offsets) == 1
    assert (sums[is_alone] == 1).all(), "its weight comes back exactly"


@given(any_records())
@settings(max_examples=15)
def test_a_shard_holds_everything_to_float16(records):
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "shard")
        manifest = write_shard(folder, records, META)
        read, found = read_shard(folder)
    assert found == manifest
    assert_same_records(read, records, exact=False)


def test_a_tiny_weight_stays_an_entry(records):
    weights = np.array([1 - 1e-12, 1e-12], np.float32)
    tiny = dataclasses.replace(
        make_records(np.random.default_rng(0), [1], max_entries=1),
        target_offsets=np.array([0, 2]),
        target_actions=np.array([7, 8], np.int16),
        target_weights=weights,
    )
    np.testing.assert_allclose(from_columns(to_columns(tiny)).target_weights, weights, atol=1e-7)


def test_many_chunks_come_back(tmp_path):
    records = make_records(np.random.default_rng(3), [400] * 300, max_entries=2)
    write_shard(tmp_path / "shard", records, META)
    _, files = read_folder(tmp_path / "shard")
    assert len([name for name in files if name.startswith("states/c.")]) > 1
    assert_same_records(read_shard(tmp_path / "shard")[0], records, exact=False)


def test_the_manifest_counts_what_is_there(shard, records):
    _, manifest = read_shard(shard)
    assert manifest.kind == "shard"
    assert manifest.meta == {
        "game": "chess", "iteration": 3, "num_games": 4, "num_positions": 50,
        "record_words": 5, "shard_version": 3,
    }


def opened_by_name(shard):
    return f"zip::{shard}"


def opened_as_store(shard):
    return zarr.storage.ZipStore(shard, mode="r")


@pytest.mark.parametrize("way", [opened_by_name, opened_as_store])
def test_zarr_opens_a_shard_without_a_warning(way, shard, records):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group = zarr.open(way(shard), mode="r")
        assert sorted(group.array_keys()) == sorted(STORED_COLUMNS)
        for name, column in to_columns(records).items():
            np.testing.assert_array_equal(group[name][...], column, name)


def test_a_shard_describes_itself_to_programs_that_have_zarr_alone(shard, records):
    """xarray makes a data set of arrays whose dimensions have names, and one length each."""
    group = zarr.open(opened_by_name(shard), mode="r")
    assert "chess-snn" in group.attrs["description"]
    lengths = {"position": 50, "game": 4, "word": 5, "target": len(records.target_actions)}
    for name, array in group.arrays():
        assert array.attrs["description"]
        assert array.shape == tuple(lengths[d] for d in array.metadata.dimension_names), name


def test_arrays_without_names_of_dimensions_are_read_as_before(tmp_path, records):
    files = encode_arrays(to_columns(records), STORED_COLUMNS)
    for name, content in files.items():
        if name.endswith("zarr.json"):
            metadata = json.loads(content) | {"attributes": {}}
            metadata.pop("dimension_names", None)
            files[name] = json.dumps(metadata).encode()
    shard = tmp_path / "shard-0000"
    forge_files(shard, files, SOUND_META)
    assert_same_records(read_shard(shard)[0], records, exact=False)


def test_a_shard_is_one_file_that_is_the_same_whenever_it_is_written(tmp_path, shard, records):
    again = tmp_path / "again"
    write_shard(again, records, META | {"when": "later"})
    assert shard.is_file()
    assert read_manifest(again).files == read_manifest(shard).files
    assert zipped_part(again) == zipped_part(shard)
    with zipfile.ZipFile(shard) as opened:
        assert opened.testzip() is None


def test_concatenated_shards_hold_the_games_of_both():
    rng = np.random.default_rng(5)
    parts = [make_records(rng, lengths) for lengths in ([2, 3], [4], [1, 1, 1])]
    both = concatenate(parts)
    assert both.num_games == 6
    assert both.num_positions == 12
    k, row = 2, 5  # the only game of the second part
    assert list(both.game_offsets[k : k + 2]) == [row, row + 4]
    np.testing.assert_array_equal(both.states[row : row + 4], parts[1].states)
    lo, hi = both.target_offsets[row], both.target_offsets[row + 4]
    np.testing.assert_array_equal(both.target_actions[lo:hi], parts[1].target_actions)


def test_a_second_writer_gets_what_is_there(shard, records):
    first = read_shard(shard)
    other = make_records(np.random.default_rng(9), [8, 8])
    assert write_shard(shard, other, {"game": "chess"}) == first[1]
    assert_same_records(read_shard(shard)[0], records, exact=False)


@pytest.mark.fault(18)
def test_writers_at_once_agree_on_one_shard(tmp_path):
    barrier, manifests = threading.Barrier(4), []

    def write(seed):
        mine = make_records(np.random.default_rng(seed), [20])
        barrier.wait()
        manifests.append(write_shard(tmp_path / "shard", mine, META | {"writer": seed}))

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read, manifest = read_shard(tmp_path / "shard")
    assert manifests == [manifest] * 4
    winner = make_records(np.random.default_rng(manifest.meta["writer"]), [20])
    assert_same_records(read, winner, exact=False)
    assert [path.name for path in tmp_path.iterdir()] == ["shard"]


def test_every_byte_of_a_shard_is_checked(shard):
    content = shard.read_bytes()
    for place in range(0, len(content), 7):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        shard.write_bytes(flipped)
        for read in (read_shard, verify_folder):
            with pytest.raises(DamagedFolderError):
                read(shard)


def test_a_shard_that_is_truncated_anywhere_is_refused(shard):
    content = shard.read_bytes()
    for size in range(0, len(content), 31):
        shard.write_bytes(content[:size])
        for read in (read_shard, read_manifest):
            with pytest.raises(DamagedFolderError):
                read(shard)


def commit_columns(shard, columns, meta):
    """A shard with sound digests whose columns were never checked."""
    forge_files(shard, encode_any(columns), meta)


def encode_any(columns):
    """Also columns that a shard does not have, and of other numbers of dimensions."""
    return encode_arrays(columns, {
        name: StoredColumn(column.dtype.type, ("position", "word")[: column.ndim], name)
        for name, column in columns.items()
    })


ZEROS_EACH = 1 << 20
"""Rows of a chunk that packs well."""
SOUND_META = {
    "game": "chess", "num_games": 4, "num_positions": 50, "record_words": 5, "shard_version": 3,
}


@pytest.mark.parametrize(
    ("column", "change", "message"),
    [
        ("actions", lambda c: c[:-1], "actions"),
        ("actions", lambda c: -c - 1, "actions"),
        ("actions", lambda c: c.astype(np.int32), "actions"),
        ("values_stm", lambda c: c * np.nan, "values_stm"),
        ("surprises", lambda c: c - 100, "surprises"),
        ("surprises", lambda c: c * np.inf, "surprises"),
        ("surprises", lambda c: c[1:], "surprises"),
        ("target_lengths", lambda c: c * 0, "target_offsets"),
        ("target_lengths", lambda c: c + 1, "target_offsets"),
        ("target_actions", lambda c: -c - 1, "target_actions"),
        ("target_weights", lambda c: c * 0, "target_weights"),
        ("target_weights", lambda c: c * np.nan, "target_weights"),
        ("target_weights", lambda c: c / 2, "target_weights"),
        ("game_lengths", lambda c: c[::-1] - 1, "game_offsets"),
        ("game_lengths", lambda c: c[:-1], "game_lengths"),
        ("outcomes_white", lambda c: c + 2, "outcomes_white"),
        ("terminations", lambda c: c[:3], "terminations"),
        ("cut_values_white", lambda c: c + 3, "cut_values_white"),
        ("cut_values_white", lambda c: c * np.nan, "cut_values_white"),
        ("cut_values_white", lambda c: c + 0.5, "cut_values_white"),
        ("start_kinds", lambda c: c + 4, "start_kinds"),
        ("start_kinds", lambda c: c[:2], "start_kinds"),
        ("states", lambda c: c[:, 0], "states"),
        ("actions", lambda c: c[:, None], "actions"),
        ("terminations", lambda c: c[:, None], "terminations"),
        ("states", lambda c: c[:, :4], "states"),
    ],
)
def test_columns_that_contradict_each_other_are_refused(
    tmp_path, records, column, change, message
):
    columns = to_columns(records)
    columns[column] = change(columns[column])
    commit_columns(tmp_path / "bad", columns, SOUND_META)
    with pytest.raises(CorruptDataError, match=rf"bad .*{message}"):
        read_shard(tmp_path / "bad")


@pytest.mark.parametrize("counts", [
    {"num_positions": 10**12}, {"num_games": 0}, {"num_games": "4"}, {"record_words": None},
    {"num_positions": True},
])
def test_counts_that_are_none_of_the_columns_are_refused(tmp_path, records, counts):
    commit_columns(tmp_path / "sound", to_columns(records), SOUND_META)
    assert_same_records(read_shard(tmp_path / "sound")[0], records, exact=False)
    commit_columns(tmp_path / "bad", to_columns(records), SOUND_META | counts)
    with pytest.raises(CorruptDataError, match="bad"):
        read_shard(tmp_path / "bad")


@pytest.mark.parametrize("column", ["actions", "target_actions", "states", "terminations"])
def test_a_small_file_of_many_zeros_is_refused_before_it_is_unpacked_bug(
    tmp_path, records, column
):
    """Columns of 6 GiB, 400 chunks of zeros each, filled the memory."""
    files, rows = encode_any(to_columns(records)), 400 * ZEROS_EACH
    metadata = json.loads(files[f"{column}/zarr.json"])
    others = metadata["shape"][1:]
    metadata["shape"] = [rows, *others]
    metadata["chunk_grid"]["configuration"]["chunk_shape"] = [ZEROS_EACH, *others]
    files[f"{column}/zarr.json"] = json.dumps(metadata).encode()
    itemsize = np.dtype(metadata["data_type"]).itemsize
    chunk = zstandard.ZstdCompressor().compress(bytes(ZEROS_EACH * math.prod(others) * itemsize))
    ends = "".join(".0" for _ in others)
    files |= {f"{column}/c.{number}{ends}": chunk for number in range(400)}
    counts = {"num_positions": rows, "num_games": rows}
    for meta in (SOUND_META, SOUND_META | counts):  # the counts may be forged as well
        forge_files(tmp_path / "bad", files, meta)
        assert (tmp_path / "bad").stat().st_size < 3 << 20
        tracemalloc.start()
        with pytest.raises(CorruptDataError, match="bad"):
            read_shard(tmp_path / "bad")
        _, most_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most_bytes < 20 << 20


def test_records_too_large_for_a_shard_are_not_written(tmp_path, records, monkeypatch):
    monkeypatch.setattr(archive, "MOST_BYTES", 1000)
    with pytest.raises(UsageError, match="1,000"):
        write_shard(tmp_path / "shard", records, META)
    assert not any(tmp_path.iterdir())


def test_a_sparse_file_is_refused_before_it_is_read(shard):
    with shard.open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(DamagedFolderError):
        read_shard(shard)


def test_a_missing_column_is_refused(tmp_path, records):
    columns = to_columns(records)
    del columns["values_stm"]
    commit_columns(tmp_path / "bad", columns, SOUND_META)
    with pytest.raises(CorruptDataError, match="values_stm"):
        read_shard(tmp_path / "bad")


@pytest.mark.parametrize(
    ("kind", "version", "message"),
    [("shard", 2, "version 2"),
     ("shard", 4, "version 4"),
     ("shard", None, "version None"),
     ("checkpoint", 2, "'checkpoint'")],
)
def test_another_kind_or_version_is_refused_by_name(tmp_path, kind, version, message):
    meta = SOUND_META | {"shard_version": version}
    forge(tmp_path / "thing", archive.pack({}), meta, kind=kind)
    with pytest.raises(UnknownVersionError, match=message):
        read_shard(tmp_path / "thing")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values_stm": np.full(50, np.nan, np.float32)}, "values_stm"),
        ({"outcomes_white": np.zeros(0, np.int8)}, "at least one game"),
        ({"actions": np.zeros(49, np.int16)}, "rows"),
    ],
)
def test_unsound_records_are_not_stored(tmp_path, records, changes, message):
    bad: GameRecords = dataclasses.replace(records, **changes)
    with pytest.raises(ValueError, match=message):
        write_shard(tmp_path / "shard", bad, META)
    assert list(tmp_path.iterdir()) == []


def test_meta_that_no_zip_file_can_hold_is_refused_and_nothing_is_written(tmp_path, records):
    with pytest.raises(ValueError, match="65535"):
        write_shard(tmp_path / "shard", records, META | {"note": "x" * 65_536})
    assert list(tmp_path.iterdir()) == []


def test_a_shard_must_name_its_game(tmp_path, records):
    with pytest.raises(ValueError, match="game"):
        write_shard(tmp_path / "shard", records, {})


# Arrays of a shard: what Zarr writes is read as Zarr reads it, and anything else is refused.


LARGE = {
    "words": np.random.default_rng(0).integers(2**64, size=(120_001, 5), dtype=np.uint64),
    "numbers": np.arange(2_000_003, dtype=np.int16),
    "shares": np.random.default_rng(1).random(1_500_001).astype(np.float16),
    "bytes": np.zeros(3_000_001, np.uint8),
}
"""Each has several chunks, the last of which is not full."""


def read_by_zarr(files, name):
    to_buffer = default_buffer_prototype().buffer.from_bytes
    store = MemoryStore({key: to_buffer(content) for key, content in files.items()})
    return zarr.open_group(store=store, mode="r", zarr_format=3)[name][...]


def assert_as_zarr_reads(columns):
    files = encode_any(columns)
    shapes = {name: (None,) * column.ndim for name, column in columns.items()}
    decoded = decode_arrays(files, shapes)
    for name, column in columns.items():
        found = decoded[name]
        assert found.dtype == column.dtype
        assert found.flags.c_contiguous
        assert found.flags.writeable
        np.testing.assert_array_equal(found, column, name)
        np.testing.assert_array_equal(found, read_by_zarr(files, name), name)


def test_arrays_of_many_chunks_come_back_as_zarr_reads_them():
    files = encode_any(LARGE)
    for name in LARGE:
        assert len([key for key in files if key.startswith(f"{name}/c")]) > 1
    assert_as_zarr_reads(LARGE)


@given(any_records())
@settings(max_examples=10)
def test_columns_of_any_records_come_back_as_zarr_reads_them(records):
    assert_as_zarr_reads(to_columns(records))


@pytest.fixture
def files():
    return encode_arrays({
        "actions": np.arange(40, dtype=np.int16),
        "states": np.arange(200, dtype=np.uint64).reshape(40, 5),
    }, STORED_COLUMNS)


CODECS = [{"name": "bytes", "configuration": {"endian": "little"}}]
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": True}}


@pytest.mark.parametrize(("changes", "reason"), [
    ({"codecs": [*CODECS, {"name": "numcodecs.pickle"}]}, "not those of a shard"),
    ({"codecs": [{"name": "numcodecs.pickle"}, *CODECS, ZSTD]}, "not those of a shard"),
    ({"codecs": [*CODECS, ZSTD, ZSTD]}, "not those of a shard"),
    ({"codecs": CODECS}, "not those of a shard"),
    ({"codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, ZSTD]}, "not those of"),
    ({"data_type": "object"}, "must hold numbers"),
    ({"data_type": "complex64"}, "must hold numbers"),
    ({"node_type": "group"}, "node_type"),
    ({"zarr_format": 2}, "zarr_format"),
    ({"fill_value": 1}, "fill_value"),
    ({"storage_transformers": [{"name": "x"}]}, "storage transformers"),
    ({"shape": [-1]}, "positive numbers"),
    ({"shape": []}, "positive numbers"),
    ({"shape": [True]}, "positive numbers"),
    ({"shape": [40, 5]}, "must have shape"),
    ({"chunk_grid": {"configuration": {"chunk_shape": [10**12]}}}, "more than are written"),
    ({"chunk_grid": {"configuration": {"chunk_shape": [20]}}}, "another size than 40 bytes"),
])
def test_an_array_that_nobody_here_wrote_is_refused(files, changes, reason):
    metadata = json.loads(files["actions/zarr.json"])
    files["actions/zarr.json"] = json.dumps(metadata | changes).encode()
    with pytest.raises(ValueError, match=reason):
        decode_arrays(files, {"actions": (None,)})


@pytest.mark.parametrize(("chunk", "reason"), [
    (b"", "cannot be unpacked|another size"),
    (b"no zstd", "cannot be unpacked|another size"),
    (zstandard.ZstdCompressor().compress(bytes(79)), "another size"),
    (zstandard.ZstdCompressor().compress(bytes(10**7)), "another size"),
    (zstandard.ZstdCompressor().compress(bytes(80))[:-3], "cannot be unpacked"),
])
def test_a_chunk_that_is_none_is_refused(files, chunk, reason):
    files["actions/c.0"] = chunk
    with pytest.raises(ValueError, match=reason):
        decode_arrays(files, {"actions": (None,)})


def test_a_flipped_bit_fails_the_checksum_of_its_chunk(files):
    packed = bytearray(files["states/c.0.0"])
    packed[len(packed) // 2] ^= 1
    files["states/c.0.0"] = bytes(packed)
    with pytest.raises(ValueError, match="cannot be unpacked"):
        decode_arrays(files, {"states": (40, 5)})


@pytest.mark.parametrize("missing", ["zarr.json", "actions/zarr.json", "actions/c.0"])
def test_a_missing_file_is_refused(files, missing):
    del files[missing]
    with pytest.raises(KeyError):
        decode_arrays(files, {"actions": (None,)})


DEADLINE_S = 600


@pytest.fixture(scope="module")
def processes():
    """Starts processes that have the imports behind them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["chess_snn.data", "made_records"])
    return context


def kill_a_writer(processes, parent, delay_s):
    """Shards that are visible after kill -9 in the middle of writing, and what else is there."""
    parent.mkdir()
    writer = processes.Process(target=write_for_ever, args=(str(parent),), daemon=True)
    writer.start()
    try:
        wait_for((parent / "shard-0000").exists)
        time.sleep(delay_s)
        # On a busy machine the writer may have done nothing meanwhile.
        wait_for(lambda: any(parent.glob(".tmp-*")), poll_s=0.002)
    finally:
        writer.kill()
        writer.join(DEADLINE_S)
    visible = sorted(path.name for path in parent.iterdir())
    shards = [name for name in visible if not name.startswith(".tmp-")]
    return shards, [name for name in visible if name not in shards]


@pytest.mark.fault(9)
@pytest.mark.parametrize("num_kills", [10, pytest.param(25, marks=pytest.mark.slow)])
def test_kill_in_mid_shard_leaves_no_visible_partial_shard(tmp_path, processes, num_kills):
    stream = random.Random(num_kills)
    num_leftovers = 0
    for k in range(num_kills):
        parent = tmp_path / f"kill-{k}"
        shards, leftovers = kill_a_writer(processes, parent, stream.uniform(0, 0.08))
        assert shards == [f"shard-{index:04d}" for index in range(len(shards))]
        for index, shard in enumerate(shards):
            assert_same_records(read_shard(parent / shard)[0], records_of(index), exact=False)
        num_leftovers += len(leftovers)
        assert sorted(path.name for path in sweep_temporaries(parent)) == leftovers
        assert sorted(path.name for path in parent.iterdir()) == shards
    assert num_leftovers > 0, "no kill met a shard in the making: the test showed nothing"


@pytest.mark.fault(12)
@pytest.mark.parametrize("max_file_bytes", [200, 10_000])
def test_a_file_size_limit_is_a_clear_error_and_leaves_old_shards(
    tmp_path, processes, max_file_bytes
):
    write_shard(tmp_path / "shard-0000", records_of(0), {"game": "chess"})
    here, there = processes.Pipe()
    process = processes.Process(
        target=write_under_limit, args=(str(tmp_path), max_file_bytes, there)
    )
    process.start()
    assert here.poll(DEADLINE_S)
    message = here.recv()
    process.join(DEADLINE_S)
    assert "cannot write" in message
    assert "shard-0001" in message
    assert "ulimit -f" in message
    assert [path.name for path in tmp_path.iterdir()] == ["shard-0000"]
    assert_same_records(read_shard(tmp_path / "shard-0000")[0], records_of(0), exact=False)


@pytest.mark.fault(12)
def test_a_full_disk_is_a_clear_error_and_leaves_old_shards(tmp_path):
    mount = 'mount -t tmpfs -o size=1m tmpfs "$1"'
    fill = "import sys; from shard_writers import fill_disk; fill_disk(sys.argv[1])"

    def on_a_small_disk(command):
        return subprocess.run(
            ["unshare", "--map-root-user", "--mount", "sh", "-c", f"{mount} && {command}",
             "sh", tmp_path, sys.executable, fill],
            check=False, capture_output=True, text=True, timeout=DEADLINE_S,
            cwd=Path(__file__).parent,
        )

    if shutil.which("unshare") is None or on_a_small_disk("true").returncode:
        pytest.skip("mounting a small disk is not allowed here")
    run = on_a_small_disk('"$2" -c "$3" "$1"')
    assert run.returncode == 0, run.stderr
    message, num_intact = run.stdout.splitlines()
    assert "cannot write" in message
    assert "No space left on device; free space on that disk" in message
    assert int(num_intact) > 0
