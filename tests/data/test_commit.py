import errno
import os
import threading
from pathlib import Path

import pytest
from unlisted_folders import FOR_ALL, shared_folder, unlisted

from chess_snn.data import is_committed, staged_folder, verify_folder
from chess_snn.errors import CorruptDataError, UsageError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def commit(target, text):
    with staged_folder(target) as stage:
        (stage.path / "data").write_text(text)
        return stage.commit(kind="thing", meta={"text": text})


def test_nothing_is_visible_before_the_commit_and_nothing_else_after(tmp_path):
    target = tmp_path / "games" / "iter-000001" / "shard-0000"
    with staged_folder(target) as stage:
        (stage.path / "data").write_text("x")
        assert not target.exists()
        assert stage.path.parent == target.parent
        manifest = stage.commit(kind="thing", meta={"a": 1})
    assert names(target.parent) == ["shard-0000"]
    assert names(target) == ["MANIFEST.json", "data"]
    assert is_committed(target)
    assert verify_folder(target) == manifest


def test_leaving_without_a_commit_leaves_nothing(tmp_path):
    with staged_folder(tmp_path / "thing") as stage:
        (stage.path / "data").write_text("x")
    assert names(tmp_path) == []
    assert not is_committed(tmp_path / "thing")


def test_an_error_inside_leaves_nothing_and_is_not_disguised(tmp_path):
    def write(what_json_cannot_hold):
        with staged_folder(tmp_path / "thing") as stage:
            (stage.path / "data").write_text("x")
            stage.commit(kind="thing", meta={"bad": what_json_cannot_hold})

    with pytest.raises(TypeError):
        write(object())
    assert names(tmp_path) == []


def commit_unlisted(target):
    with staged_folder(target) as stage:
        (stage.path / "sub").mkdir()
        (stage.path / "sub" / "data").write_text("x")
        stage.path.chmod(FOR_ALL)
        with unlisted(stage.path / "sub"):
            stage.commit(kind="thing", meta={})


def test_a_folder_that_cannot_be_listed_is_not_committed_without_its_files_bug():
    with shared_folder() as parent:
        with pytest.raises(UsageError, match="thing"):
            commit_unlisted(parent / "thing")
        assert names(parent) == []


@pytest.mark.parametrize(
    ("code", "hint"),
    [(errno.ENOSPC, "free space"), (errno.EROFS, "read-only"), (errno.EFBIG, "ulimit")],
)
def test_an_error_of_the_disk_says_what_helps(tmp_path, code, hint):
    def write():
        with staged_folder(tmp_path / "thing"):
            raise OSError(code, "as the kernel says it")

    with pytest.raises(UsageError, match=f"thing.*{hint}"):
        write()
    assert names(tmp_path) == []


@pytest.mark.fault(18)
def test_of_many_writers_at_once_one_wins_and_all_agree(tmp_path):
    barrier, manifests = threading.Barrier(8), []

    def write(k):
        with staged_folder(tmp_path / "thing") as stage:
            (stage.path / "data").write_text(str(k))
            barrier.wait()
            manifests.append(stage.commit(kind="thing", meta={"writer": k}))

    threads = [threading.Thread(target=write, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(manifests) == 8
    assert all(manifest == verify_folder(tmp_path / "thing") for manifest in manifests)
    assert names(tmp_path) == ["thing"]


def test_a_target_that_is_no_committed_folder_is_refused_and_kept(tmp_path):
    target = tmp_path / "thing"
    target.mkdir()
    (target / "precious").write_text("x")
    with pytest.raises(CorruptDataError, match=r"thing/MANIFEST\.json"):
        commit(target, "new")
    assert names(tmp_path) == ["thing"]
    assert (target / "precious").read_text() == "x"


def test_a_target_that_is_a_file_is_refused_and_kept(tmp_path):
    target = tmp_path / "thing"
    target.write_text("x")
    with pytest.raises(UsageError, match="thing"):
        commit(target, "new")
    assert target.read_text() == "x"
    assert names(tmp_path) == ["thing"]


def test_the_name_of_what_another_committed_is_on_the_disk_bug(tmp_path, monkeypatch):
    """The other may have died between giving the name and syncing it."""
    commit(tmp_path / "thing", "first")
    synced = []
    fsync = os.fsync

    def note(fd):
        synced.append(Path(f"/proc/self/fd/{fd}").readlink())
        fsync(fd)

    with staged_folder(tmp_path / "thing") as stage:
        monkeypatch.setattr(os, "fsync", note)
        (stage.path / "data").write_text("second")
        assert stage.commit(kind="thing", meta={}).meta == {"text": "first"}
    assert synced[-1] == tmp_path
    assert (tmp_path / "thing" / "data").read_text() == "first"
