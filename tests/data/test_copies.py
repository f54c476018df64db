import errno
import os
import shutil

import pytest

from chess_snn.data import (
    copy_folder,
    is_committed,
    link_folder,
    read_manifest,
    staged_folder,
    verify_files,
    verify_folder,
)
from chess_snn.data.commit import commit_archive
from chess_snn.errors import CorruptDataError, DamagedFolderError


@pytest.fixture
def folder(tmp_path):
    target = tmp_path / "here" / "thing"
    with staged_folder(target) as stage:
        (stage.path / "column").mkdir()
        (stage.path / "column" / "0").write_bytes(b"\0\1\2")
        (stage.path / "weights").write_bytes(b"w" * 100)
        stage.commit("thing", {"generation": 3})
    return target


def test_a_copy_is_the_same_to_the_bit_manifest_included(folder, tmp_path):
    there = tmp_path / "there" / "deep" / "thing"
    assert copy_folder(folder, there) == verify_folder(folder) == verify_folder(there)
    assert (there / "MANIFEST.json").read_bytes() == (folder / "MANIFEST.json").read_bytes()
    assert (there / "column" / "0").read_bytes() == b"\0\1\2"
    assert (there / "weights").stat().st_ino != (folder / "weights").stat().st_ino


def test_what_is_committed_already_stays(folder, tmp_path):
    there = tmp_path / "there"
    with staged_folder(there) as stage:
        other = stage.commit("thing", {"generation": 4})
    assert copy_folder(folder, there) == other
    assert verify_folder(there) == other


@pytest.mark.parametrize("content", [b"w" * 99, b"w" * 99 + b"W"])
def test_a_copy_that_is_not_what_its_manifest_lists_is_not_committed(
    folder, tmp_path, monkeypatch, content
):
    copyfile, there = shutil.copyfile, tmp_path / "there"

    def spoilt(source, target):
        copyfile(source, target)
        if source.name == "weights":
            target.write_bytes(content)

    monkeypatch.setattr(shutil, "copyfile", spoilt)
    with pytest.raises(CorruptDataError, match=r"here/thing .*there: .*weights"):
        copy_folder(folder, there)
    assert not is_committed(there)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here"]


@pytest.mark.parametrize("name", ["folder", "file"])
def test_a_place_that_is_taken_by_something_else_is_named(request, name, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    (there / "file").write_text("x")
    with pytest.raises(CorruptDataError, match=r"there/MANIFEST\.json"):
        copy_folder(request.getfixturevalue(name), there)
    assert (there / "file").read_text() == "x"


def test_a_damaged_folder_is_not_copied(folder, tmp_path):
    (folder / "weights").write_bytes(b"W" * 100)
    with pytest.raises(DamagedFolderError, match="here/thing/weights") as refused:
        copy_folder(folder, tmp_path / "there")
    assert refused.value.folder == folder
    assert not is_committed(tmp_path / "there")


def test_files_of_a_folder_are_verified_one_by_one(folder):
    (folder / "column" / "0").write_bytes(b"\0\1\3")
    assert verify_files(folder, ["weights"]) == read_manifest(folder)
    with pytest.raises(CorruptDataError, match=r"column/0"):
        verify_files(folder, ["weights", "column/0"])
    (folder / "column" / "0").unlink()
    assert verify_files(folder, ["weights"])
    with pytest.raises(CorruptDataError, match="column/0"):
        verify_files(folder, ["column/0"])
    with pytest.raises(CorruptDataError, match="other"):
        verify_files(folder, ["other"])


@pytest.fixture
def file(tmp_path):
    target = tmp_path / "here" / "file"
    commit_archive(target, {"column/0": b"\0\1\2"}, "thing", {"generation": 3})
    return target


def test_a_copy_of_a_zip_file_is_the_same_to_the_bit(file, tmp_path):
    there = tmp_path / "there" / "deep" / "file"
    assert copy_folder(file, there) == verify_folder(file) == verify_folder(there)
    assert there.read_bytes() == file.read_bytes()


@pytest.mark.parametrize("change", [
    lambda content: content[:-1], lambda content: content + b"\n", lambda content: b"",
    lambda content: content.replace(b"\0\1\2", b"\0\1\3"),
    lambda content: content.replace(b'"generation": 3', b'"generation": 4'),
])
def test_a_damaged_zip_file_is_not_copied(file, tmp_path, change):
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(CorruptDataError, match="here/file"):
        copy_folder(file, tmp_path / "there")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here"]


def test_a_zip_file_is_linked_or_on_another_disk_copied(file, tmp_path, monkeypatch):
    assert link_folder(file, tmp_path / "linked" / "file") == verify_folder(file)
    assert (tmp_path / "linked" / "file").stat().st_ino == file.stat().st_ino
    assert [path.name for path in (tmp_path / "linked").iterdir()] == ["file"]

    link = os.link

    def another_disk(source, target):
        if source == file:
            raise OSError(errno.EXDEV, "another disk")
        link(source, target)

    monkeypatch.setattr(os, "link", another_disk)
    assert link_folder(file, tmp_path / "copied" / "file") == verify_folder(file)
    assert (tmp_path / "copied" / "file").stat().st_ino != file.stat().st_ino
    assert (tmp_path / "copied" / "file").read_bytes() == file.read_bytes()
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CorruptDataError, match="file: "):
        link_folder(file, tmp_path / "third" / "file")
