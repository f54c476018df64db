import hashlib
import json
import pickle
import random
import shutil

import pytest
from unlisted_folders import shared_folder, unlisted

from chess_snn.data import (
    MANIFEST_NAME,
    Manifest,
    StoredFile,
    read_folder,
    read_manifest,
    staged_folder,
    verify_folder,
)
from chess_snn.errors import CorruptDataError, DamagedFolderError, UnknownVersionError

EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def committed(tmp_path):
    return commit(tmp_path / "thing")


def commit(target):
    with staged_folder(target) as stage:
        (stage.path / "sub").mkdir()
        (stage.path / "sub" / "data.bin").write_bytes(bytes(range(200)))
        (stage.path / "empty").touch()
        stage.commit(kind="thing", meta={"generation": 12, "score": 0.5, "name": "é"})
    return target


def write_manifest(folder, **files):
    entry = StoredFile(0, EMPTY_SHA256)
    manifest = Manifest("thing", "2026-01-01T00:00:00+00:00", {}, dict.fromkeys(files, entry))
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST_NAME).write_text(manifest.to_text(), encoding="utf-8")


def signed(body):
    """``body`` with the digest that a writer of the format would give it."""
    unsigned = {key: value for key, value in body.items() if key != "digest"}
    text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"))
    return unsigned | {"digest": hashlib.sha256(text.encode()).hexdigest()}


def edit_manifest(folder, sign=False, **changes):
    path = folder / MANIFEST_NAME
    body = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps(signed(body) if sign else body), encoding="utf-8")


def test_a_manifest_says_what_was_committed(committed):
    manifest = verify_folder(committed)
    assert manifest.kind == "thing"
    assert manifest.meta == {"generation": 12, "score": 0.5, "name": "é"}
    assert manifest.files["empty"] == StoredFile(0, EMPTY_SHA256)
    assert manifest.files.keys() == {"empty", "sub/data.bin"}
    assert manifest.num_bytes == 200
    assert read_folder(committed) == (
        manifest, {"empty": b"", "sub/data.bin": bytes(range(200))}
    )


def test_a_flipped_bit_anywhere_in_the_manifest_is_refused(committed):
    path = committed / MANIFEST_NAME
    original = path.read_bytes()
    stream = random.Random(1)
    for place in range(len(original)):
        damaged = bytearray(original)
        damaged[place] ^= 1 << stream.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(CorruptDataError, match=MANIFEST_NAME):
            read_manifest(committed)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"meta": {"generation": 13}}, "digest"),
        ({"files": {}}, "digest"),
        ({"version": 2}, "digest"),
        ({"schema": "other"}, "'other'"),
        ({"surprise": float("nan")}, "NaN"),
    ],
)
def test_an_edited_manifest_is_refused(committed, changes, message):
    edit_manifest(committed, **changes)
    with pytest.raises(DamagedFolderError, match=message) as refused:
        read_manifest(committed)
    assert refused.value.folder == committed


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"version": 2}, UnknownVersionError,
         "version 2 .*version 1"),
        ({"version": None}, UnknownVersionError, "version None"),
        ({"surprise": 1}, DamagedFolderError, "surprise"),
        ({"files": []}, DamagedFolderError, MANIFEST_NAME),
    ],
)
def test_an_intact_manifest_of_another_kind_is_refused(committed, changes, error, message):
    edit_manifest(committed, sign=True, **changes)
    with pytest.raises(error, match=message):
        read_manifest(committed)


@pytest.mark.parametrize(
    "name",
    ["../outside", "/etc/passwd", "a/../../outside", "..", ".", "", "a//b", "./a", "a/", "a\0b",
     MANIFEST_NAME],
)
def test_a_path_that_leaves_the_folder_is_refused(tmp_path, name):
    (tmp_path / "outside").touch()
    write_manifest(tmp_path / "thing", **{name: None})
    with pytest.raises(CorruptDataError):
        read_manifest(tmp_path / "thing")


@pytest.mark.parametrize(
    "entry",
    [None, {"bytes": 0}, {"bytes": -1, "sha256": EMPTY_SHA256},
     {"bytes": "0", "sha256": EMPTY_SHA256}, {"bytes": 0, "sha256": "E" * 64},
     {"bytes": 0, "sha256": EMPTY_SHA256, "mode": 1}],
)
def test_a_malformed_file_entry_is_refused(tmp_path, entry):
    write_manifest(tmp_path / "thing", data=None)
    path = tmp_path / "thing" / MANIFEST_NAME
    body = json.loads(path.read_text())
    body["files"]["data"] = entry
    path.write_text(json.dumps(signed(body)))
    with pytest.raises(CorruptDataError, match="'data'"):
        read_manifest(tmp_path / "thing")


def replace_by_link(path, folder):
    """Move what is there out of ``folder``, and link to it."""
    elsewhere = path.rename(folder.with_name("elsewhere"))
    path.symlink_to(elsewhere)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "sub/data.bin").unlink(), r"sub/data\.bin"),
        (lambda f: (f / "sub/data.bin").write_bytes(b""), "200 .*0"),
        (lambda f: (f / "empty").write_bytes(b"x"), "0 .*1"),
        (lambda f: (f / "sub/new").touch(), "sub/new"),
        (lambda f: (f / "link").symlink_to(f), "link"),
        (lambda f: replace_by_link(f / "sub/data.bin", f), r"data\.bin"),
        (lambda f: replace_by_link(f / "sub", f), "sub"),
        (lambda f: shutil.rmtree(f / "sub"), r"sub/data\.bin"),
        (lambda f: (f / "sub/data.bin").write_bytes(bytes(200)), r"data\.bin"),
        (lambda f: (f / MANIFEST_NAME).unlink(), MANIFEST_NAME),
    ],
)
def test_missing_extra_and_changed_files_are_refused(committed, damage, message):
    damage(committed)
    for read in (verify_folder, read_folder):
        with pytest.raises(DamagedFolderError, match=message) as refused:
            read(committed)
        assert refused.value.folder == committed
        assert pickle.loads(pickle.dumps(refused.value)).folder == committed


@pytest.mark.parametrize("read", [verify_folder, read_folder])
def test_a_folder_that_cannot_be_listed_is_not_taken_for_damaged_bug(read):
    with shared_folder() as parent:
        target = commit(parent / "thing")
        with unlisted(target / "sub"), pytest.raises(PermissionError):
            read(target)
        assert read(target)
