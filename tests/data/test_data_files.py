import errno
import json
import os
import socket
from pathlib import Path

import pytest

from chess_snn.data import (
    MANIFEST_NAME,
    StoredFormat,
    create_text,
    is_own_digest,
    read_json,
    read_manifest,
    sweep_temporaries,
    with_digest,
    write_json,
)
from chess_snn.data.files import temporary_sibling
from chess_snn.errors import CorruptDataError, DamagedFolderError, UnknownVersionError, UsageError

UNREADABLE = "/proc/self/mem"
"""Reading it from its beginning is an input/output error, as of a disk that fails."""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_json_comes_back_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "receipts" / "iter-000001.json"
    write_json(path, {"shards": ["a", "b"], "loss": 0.25})
    write_json(path, {"shards": ["c"]})
    assert read_json(path) == {"shards": ["c"]}
    assert names(path.parent) == ["iter-000001.json"]


@pytest.mark.parametrize("text", ["0.30000000000000001", "0.1000", "1e400", "NaN"])
def test_a_number_that_this_program_would_not_write_is_damage(tmp_path, text):
    """A flipped bit in the last digits of a number may give the same number."""
    path = tmp_path / "r.json"
    path.write_text(f'{{"loss": {text}}}')
    with pytest.raises(CorruptDataError):
        read_json(path)


def test_a_value_json_cannot_hold_changes_nothing(tmp_path):
    path = tmp_path / "r.json"
    write_json(path, {"loss": 1.0})
    with pytest.raises(ValueError, match="float"):
        write_json(path, {"loss": float("nan")})
    assert read_json(path) == {"loss": 1.0}
    assert names(tmp_path) == ["r.json"]


def test_a_text_is_created_once(tmp_path):
    path = tmp_path / "deep" / "campaign.toml"
    assert create_text(path, "mine")
    assert not create_text(path, "yours")
    assert path.read_text() == "mine"
    assert names(path.parent) == ["campaign.toml"]
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="file/x"):
        create_text(tmp_path / "file" / "x", "")


def test_a_text_is_created_where_there_are_no_hard_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    test_a_text_is_created_once(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "\xff", "[1]", "null", "{} {}", "[" * 100_000])
def test_what_is_not_a_json_object_is_refused_by_name(tmp_path, text):
    path = tmp_path / "r.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(CorruptDataError, match=r"r\.json"):
        read_json(path)


@pytest.mark.parametrize("place", ["r.json", "file/r.json"])
def test_a_missing_json_file_is_refused_by_name(tmp_path, place):
    (tmp_path / "file").touch()
    with pytest.raises(CorruptDataError, match=r"r\.json"):
        read_json(tmp_path / place)


def test_a_place_taken_by_a_folder_or_under_a_file_is_a_clear_error(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for place in ("file/r.json", "file/deeper/r.json", "folder"):
        with pytest.raises(UsageError, match=place):
            write_json(tmp_path / place, {})
    assert names(tmp_path) == ["file", "folder"]
    assert names(tmp_path / "folder") == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_a_clear_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match=r"r\.json"):
        write_json(tmp_path / "r.json", {})


def test_the_sweep_removes_leftovers_of_dead_writers_only(tmp_path, dead_pid):
    host = socket.gethostname()
    dead_folder = tmp_path / f".tmp-shard-0001@{host}-{dead_pid}-00c0ffee"
    dead_file = tmp_path / f".tmp-iter-1.json@{host}-{dead_pid}-00c0ffee"
    kept = [
        temporary_sibling(tmp_path / "shard-0002").name,
        f".tmp-shard-0003@elsewhere-{dead_pid}-00c0ffee",
        f".tmp-shard-0004@not-{host}-{dead_pid}-00c0ffee",
        ".tmp-notes",
        "shard-0005",
    ]
    (dead_folder / "deep").mkdir(parents=True)
    (dead_folder / "deep" / "chunk").write_bytes(b"x")
    dead_file.write_text(json.dumps({}))
    for name in kept:
        (tmp_path / name).mkdir()

    assert sorted(sweep_temporaries(tmp_path)) == sorted([dead_folder, dead_file])
    assert names(tmp_path) == sorted(kept)
    assert sweep_temporaries(tmp_path) == []


@pytest.mark.skipif(not Path(UNREADABLE).exists(), reason="needs /proc, for a file to fail")
def test_what_the_disk_cannot_give_is_damage_bug(tmp_path):
    (tmp_path / "receipt.json").symlink_to(UNREADABLE)
    with pytest.raises(CorruptDataError, match=r"receipt\.json"):
        read_json(tmp_path / "receipt.json")
    (tmp_path / "shard").mkdir()
    (tmp_path / "shard" / MANIFEST_NAME).symlink_to(UNREADABLE)
    with pytest.raises(DamagedFolderError) as caught:
        read_manifest(tmp_path / "shard")
    assert caught.value.folder == tmp_path / "shard"


PLACE = Path("/campaign/thing.json")

FORMAT = StoredFormat("thing", version=3, upgrades={
    1: lambda body: body | {"since_2": len(body)},
    2: lambda body: body | {"since_3": sorted(body)},
})


def test_every_version_that_is_read_comes_out_as_the_present_one():
    body = {"a": 0}
    assert FORMAT.upgraded(body, 1, PLACE) == {
        "a": 0, "since_2": 1, "since_3": ["a", "since_2"],
    }
    assert body == {"a": 0}, "what was read is left as it is"
    assert FORMAT.upgraded({"a": 0, "since_2": 9}, 2, PLACE)["since_3"] == ["a", "since_2"]
    assert FORMAT.upgraded({"a": 0}, 3, PLACE) == {"a": 0}


def test_a_file_whose_digest_was_removed_or_is_another_ones_is_damaged():
    signed = StoredFormat("receipt", version=1, has_digest=True)
    body = signed.sealed({"a": 0})
    assert signed.unsealed(body, PLACE, "restore it") == {"a": 0}
    without = {name: value for name, value in body.items() if name != "digest"}
    for damaged in (without, body | {"a": 1}, body | {"digest": "0" * 64}):
        with pytest.raises(CorruptDataError):
            signed.unsealed(damaged, PLACE, "restore it")


@pytest.mark.parametrize("version", [4, 0, -1, "3", 2.0, True, None])
def test_any_other_version_is_refused_by_name(version):
    with pytest.raises(UnknownVersionError, match=f"{PLACE}.* {version!r} "):
        FORMAT.check(version, PLACE)


def test_a_gap_between_versions_is_a_bug():
    with pytest.raises(AssertionError):
        StoredFormat("thing", version=3, upgrades={1: dict})


def test_a_digest_is_of_everything_else_whatever_its_order():
    signed = with_digest({"b": [1.5, None], "a": "é"})
    assert is_own_digest(signed)
    assert is_own_digest(dict(reversed(signed.items())))
    for changed in (
        signed | {"a": "e"}, signed | {"c": 0}, signed | {"b": [1.5]}, signed | {"digest": "0"},
        {"a": "é", "digest": signed["digest"]}, {"a": "é"},
    ):
        assert not is_own_digest(changed)
