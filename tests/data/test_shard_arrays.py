"""Arrays of a shard: what Zarr writes is read as Zarr reads it, and anything else is refused."""

import json

import numpy as np
import pytest
import zarr
import zstandard
from hypothesis import given, settings
from made_records import any_records
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

from chess_snn.data.records import to_columns
from chess_snn.data.shard import decode_arrays, encode_arrays

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
    files = encode_arrays(columns)
    decoded = decode_arrays(files, columns)
    for name, column in columns.items():
        found = decoded[name]
        assert found.dtype == column.dtype
        assert found.flags.c_contiguous
        assert found.flags.writeable
        np.testing.assert_array_equal(found, column, name)
        np.testing.assert_array_equal(found, read_by_zarr(files, name), name)


def test_arrays_of_many_chunks_come_back_as_zarr_reads_them():
    for name in LARGE:
        assert len([key for key in encode_arrays(LARGE) if key.startswith(f"{name}/c")]) > 1
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
    })


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
    ({"node_type": "group"}, "node_type must be 'array'"),
    ({"zarr_format": 2}, "zarr_format must be 3"),
    ({"fill_value": 1}, "fill_value must be 0"),
    ({"storage_transformers": [{"name": "x"}]}, "storage transformers"),
    ({"shape": [-1]}, "positive numbers"),
    ({"shape": []}, "positive numbers"),
    ({"shape": [True]}, "positive numbers"),
    ({"shape": [40, 5]}, "cannot have chunks"),
    ({"chunk_grid": {"configuration": {"chunk_shape": [10**12]}}}, "more than are written"),
    ({"chunk_grid": {"configuration": {"chunk_shape": [20]}}}, "another size than 40 bytes"),
])
def test_an_array_that_nobody_here_wrote_is_refused(files, changes, reason):
    metadata = json.loads(files["actions/zarr.json"])
    files["actions/zarr.json"] = json.dumps(metadata | changes).encode()
    with pytest.raises(ValueError, match=reason):
        decode_arrays(files, ["actions"])


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
        decode_arrays(files, ["actions"])


def test_a_flipped_bit_fails_the_checksum_of_its_chunk(files):
    packed = bytearray(files["states/c.0.0"])
    packed[len(packed) // 2] ^= 1
    files["states/c.0.0"] = bytes(packed)
    with pytest.raises(ValueError, match="cannot be unpacked"):
        decode_arrays(files, ["states"])


@pytest.mark.parametrize("missing", ["zarr.json", "actions/zarr.json", "actions/c.0"])
def test_a_missing_file_is_refused(files, missing):
    del files[missing]
    with pytest.raises(KeyError):
        decode_arrays(files, ["actions"])
