"""The Zip file of a shard: what was packed comes back, and anything else is refused."""

import io
import struct
import tracemalloc
import warnings
import zipfile

import pytest
from stored_shards import forge, zipped_part

from chess_snn.data import archive, read_folder, read_manifest, verify_folder
from chess_snn.data.archive import MOST_COMMENT_BYTES, NO_COMMENT, pack, split, unpack, with_comment
from chess_snn.data.commit import commit_archive
from chess_snn.errors import CorruptDataError, DamagedFolderError

FILES = {"zarr.json": b"{}", "states/c.0": bytes(range(256)) * 40, "empty": b""}
CENTRAL = b"PK\x01\x02"
"""Begins the entry of a member in the list of members."""
FLAGS, METHOD, PACKED_SIZE, SIZE = 8, 10, 20, 24
"""Places of fields in it."""


def made_by_zipfile(*members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, content in members:
            made.writestr(zipfile.ZipInfo(name), content, method)  # dated 1980: the same bytes
    return buffer.getvalue()


def changed(zipped: bytes, field: int, layout: str, value: int, entry: int = 0) -> bytes:
    """``zipped`` with another value in the list entry of a member."""
    place = -1
    for _ in range(entry + 1):
        place = zipped.index(CENTRAL, place + 1)
    content = bytearray(zipped)
    struct.pack_into(layout, content, place + field, value)
    return bytes(content)


def test_files_come_back_from_a_zip_file_that_any_program_reads():
    assert unpack(pack(FILES)) == FILES
    with zipfile.ZipFile(io.BytesIO(pack(FILES))) as opened:
        assert opened.testzip() is None
        assert sorted(opened.namelist()) == sorted(FILES)
        for member in opened.infolist():
            assert member.external_attr >> 16 == 0o644, "readable once it is extracted"


def test_the_same_files_give_the_same_bytes_in_whatever_order():
    assert pack(FILES) == pack(dict(reversed(FILES.items())))


@pytest.mark.parametrize("size", [0, 1, 5000, MOST_COMMENT_BYTES])
def test_a_comment_comes_back_and_leaves_the_rest_as_it_is(size):
    zipped, comment = pack(FILES), b"x" * size
    content = with_comment(zipped, comment)
    before, found = split(content)
    assert bytes(before) + NO_COMMENT == zipped
    assert found == comment
    assert unpack(content) == FILES
    assert split(content[-archive.TAIL_BYTES :])[1] == comment


def test_a_comment_that_is_too_long_is_refused():
    with pytest.raises(ValueError, match="65536"):
        with_comment(pack(FILES), b"x" * (MOST_COMMENT_BYTES + 1))


@pytest.mark.parametrize("content", [
    b"", b"PK", b"PK\x05\x06", b"no Zip file" * 10, pack(FILES)[:-1],
    with_comment(pack(FILES), b"{}")[:-1], with_comment(pack(FILES), b"{}") + b"\n",
    with_comment(pack(FILES), b"{}") + b"x" * MOST_COMMENT_BYTES,
])
def test_an_end_that_is_not_that_of_a_zip_file_is_refused(content):
    with pytest.raises(ValueError, match="Zip file"):
        split(content)


BOMB = made_by_zipfile(("zarr.json", bytes(50 << 20)), method=zipfile.ZIP_DEFLATED)
TWICE = made_by_zipfile(("a", b"first"), ("a", b"second"))
MADE = made_by_zipfile(("a", b"1" * 100), ("b", b"2" * 100))

FOREIGN = {
    "compressed": BOMB, "said to be compressed": changed(MADE, METHOD, "<H", 8),
    "of an unknown method": changed(MADE, METHOD, "<H", 99),
    "encrypted": changed(MADE, FLAGS, "<H", 1), "twice": TWICE,
    "two sizes": changed(MADE, SIZE, "<I", 1 << 30),
    "too large": changed(changed(MADE, SIZE, "<I", 1 << 31), PACKED_SIZE, "<I", 1 << 31),
    "no list": MADE.replace(CENTRAL, b"PK\x01\x03"), "cut in front": MADE[10:],
    "another name in the list": MADE.replace(b"b", b"c", 1),
    "other bytes": MADE.replace(b"222", b"223", 1), "no Zip file": b"PK" * 100, "empty": b"",
}


@pytest.mark.parametrize("zipped", FOREIGN.values(), ids=FOREIGN)
def test_a_zip_file_that_was_not_packed_here_is_refused_and_fills_no_memory(zipped):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError):  # noqa: PT011 - the type of everything that is foreign
            unpack(zipped)
        assert tracemalloc.get_traced_memory()[1] < 5 << 20
    finally:
        tracemalloc.stop()


def test_members_that_share_their_bytes_are_refused():
    """A thousand names for one megabyte would take a gigabyte of memory."""
    content = bytes(1 << 20)
    entry_of = struct.Struct("<4s6H3I5H2I")
    with zipfile.ZipFile(io.BytesIO(pack({"x": content}))) as opened:
        crc = opened.infolist()[0].CRC
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 0, 0, 33, crc, 1 << 20, 1 << 20, 1, 0)
    body, entries = local + b"x" + content, b""
    for number in range(1000):
        name = b"%d" % number
        entries += entry_of.pack(
            CENTRAL, 20, 20, 0, 0, 0, 33, crc, 1 << 20, 1 << 20, len(name), 0, 0, 0, 0, 0, 0
        ) + name
    end = struct.pack(
        "<4s4H2IH", b"PK\x05\x06", 0, 0, 1000, 1000, len(entries), len(body), 0
    )
    with pytest.raises(ValueError):  # noqa: PT011 - the type of everything that is foreign
        unpack(body + entries + end)


def test_a_zip_file_that_is_foreign_is_refused_where_its_digest_is_right(tmp_path):
    for name, zipped in FOREIGN.items():
        if len(zipped) < 22 or name == "no Zip file":
            continue  # there is no place for a comment
        path = forge(tmp_path / "shard", zipped, {})
        with pytest.raises(DamagedFolderError, match="shard: "):
            read_folder(path)


@pytest.fixture
def committed(tmp_path):
    path = tmp_path / "games" / "shard-0000"
    commit_archive(path, FILES, "thing", {"generation": 3})
    return path


def test_a_committed_zip_file_is_read_as_a_committed_folder_is(committed):
    manifest = verify_folder(committed)
    assert (manifest.kind, manifest.meta) == ("thing", {"generation": 3})
    assert read_manifest(committed) == manifest
    assert read_folder(committed) == (manifest, FILES)
    assert manifest.num_bytes == len(zipped_part(committed))
    assert [path.name for path in committed.parent.iterdir()] == ["shard-0000"]
    assert committed.stat().st_nlink == 1


def test_a_manifest_of_a_folder_is_not_that_of_a_zip_file(committed):
    body = split(committed.read_bytes())[1].replace(b"archive.zip", b"archive.zap")
    committed.write_bytes(with_comment(zipped_part(committed), body))
    with pytest.raises(DamagedFolderError, match="digest"):
        read_manifest(committed)


@pytest.mark.parametrize("where", ["taken by a folder", "taken by a file"])
def test_a_place_that_is_taken_by_something_else_stays_as_it_is(tmp_path, where):
    target = tmp_path / "thing"
    if where == "taken by a folder":
        target.mkdir()
    else:
        target.write_text("x")
    with pytest.raises(CorruptDataError, match="thing"):
        commit_archive(target, FILES, "thing", {})
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]
