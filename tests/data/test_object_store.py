"""Committed folders in a real S3 server: whole or not there, and every byte checked."""

import json

import pytest
from s3_server import BUCKET, CREDENTIALS, URL

from chess_snn.data import commit_copy, staged_folder, verify_folder
from chess_snn.data.bucket import Bucket
from chess_snn.data.commit import commit_archive
from chess_snn.data.object_store import ObjectStore
from chess_snn.errors import CorruptDataError, StorageError

NAME = "games/iter-000000/shard-0003"
BIG = 12 << 20
"""Goes in several parts."""
pytestmark = pytest.mark.usefixtures("s3_environment")


@pytest.fixture
def url(request):
    """A prefix of this test's own."""
    return f"{URL}/{abs(hash(request.node.name))}"


@pytest.fixture
def store(server, url):
    return ObjectStore(Bucket(url, server.endpoint))


@pytest.fixture
def folder(tmp_path):
    return committed(tmp_path / "thing", b"w" * 100)


def committed(target, content):
    with staged_folder(target) as stage:
        (stage.path / "column").mkdir()
        (stage.path / "column" / "0").write_bytes(b"\0\1\2")
        (stage.path / "weights").write_bytes(content)
        stage.commit("thing", {"generation": 3})
    return target


def key_of(url, name):
    return f"{url.removeprefix(f's3://{BUCKET}/')}/{name}"


def test_a_folder_comes_back_the_same_to_the_bit(store, folder, tmp_path):
    assert store.put_folder(NAME, folder) > 100
    assert store.committed("games/*/*") == {NAME}
    assert store.get_folder(NAME, tmp_path / "back") == verify_folder(folder)
    for path in folder.rglob("*"):
        if path.is_file():
            assert (tmp_path / "back" / path.relative_to(folder)).read_bytes() == path.read_bytes()


def test_a_file_of_several_parts(store, tmp_path):
    content = bytes(range(256)) * (BIG // 256)
    store.put_folder(NAME, committed(tmp_path / "big", content))
    assert store.get_files(NAME)["weights"] == content


def test_a_folder_is_there_when_its_manifest_is_and_that_is_put_last(
    server, store, folder, url, monkeypatch
):
    def killed(name, content):
        raise KeyboardInterrupt

    monkeypatch.setattr(store.bucket, "put_new", killed)
    with pytest.raises(KeyboardInterrupt):
        store.put_folder(NAME, folder)
    assert key_of(url, f"{NAME}/weights") in server.object_keys()
    assert store.committed("games/*/*") == set()
    with pytest.raises(CorruptDataError, match=r"MANIFEST\.json"):
        store.get_files(NAME)
    monkeypatch.undo()
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    assert store.put_folder(NAME, folder) > 0
    assert store.committed("games/*/*") == {NAME}


def test_put_again_it_sends_nothing(store, folder):
    store.put_folder(NAME, folder)
    assert store.put_folder(NAME, folder) == 0


def test_the_same_files_committed_at_another_time_are_the_same(store, folder, tmp_path):
    store.put_folder(NAME, folder)
    copy = tmp_path / "again"
    with staged_folder(copy) as stage:
        (stage.path / "column").mkdir()
        (stage.path / "column" / "0").write_bytes(b"\0\1\2")
        (stage.path / "weights").write_bytes(b"w" * 100)
        stage.commit("thing", {"generation": 3, "when": "later"})
    assert store.put_folder(NAME, copy) == 0


def test_other_files_under_a_name_that_is_taken_are_refused_and_change_nothing(
    server, store, folder, tmp_path, url
):
    store.put_folder(NAME, folder)
    with pytest.raises(StorageError, match=NAME):
        store.put_folder(NAME, committed(tmp_path / "other", b"v" * 100))
    assert store.get_files(NAME)["weights"] == b"w" * 100


def test_of_two_who_commit_at_one_instant_one_succeeds(server, store, url):
    other = Bucket(url, server.endpoint)
    assert store.bucket.put_new("a", b"first")
    assert not other.put_new("a", b"second")
    assert store.bucket.get("a") == b"first"


def test_damage_in_the_store_is_found_and_named(server, store, folder, tmp_path, url):
    store.put_folder(NAME, folder)
    client, key = server.client(), key_of(url, f"{NAME}/column/0")
    client.put_object(Bucket=BUCKET, Key=key, Body=b"\0\1\3")
    with pytest.raises(CorruptDataError, match="column/0"):
        store.get_folder(NAME, tmp_path / "back")
    client.delete_object(Bucket=BUCKET, Key=key)
    with pytest.raises(CorruptDataError, match="column/0"):
        store.get_folder(NAME, tmp_path / "back")
    manifest = key_of(url, f"{NAME}/MANIFEST.json")
    body = json.loads(client.get_object(Bucket=BUCKET, Key=manifest)["Body"].read())
    client.put_object(
        Bucket=BUCKET, Key=manifest, Body=json.dumps(body | {"kind": "other"}).encode()
    )
    with pytest.raises(CorruptDataError, match="digest"):
        store.get_folder(NAME, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_a_damaged_folder_is_not_put(store, folder):
    (folder / "weights").write_bytes(b"W" * 100)
    with pytest.raises(CorruptDataError, match="weights"):
        store.put_folder(NAME, folder)
    assert store.bucket.names() == []


def test_a_zip_file_is_one_object_and_comes_back_the_same_to_the_bit(server, store, tmp_path, url):
    commit_archive(tmp_path / "shard", {"column/0": b"\0\1\2"}, "thing", {"generation": 3})
    assert store.put_folder(NAME, tmp_path / "shard") == (tmp_path / "shard").stat().st_size
    assert store.bucket.names() == [NAME]
    assert store.committed("games/*/*") == {NAME}
    assert store.get_folder(NAME, tmp_path / "back") == verify_folder(tmp_path / "shard")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "shard").read_bytes()
    assert store.put_folder(NAME, tmp_path / "shard") == 0

    commit_archive(tmp_path / "other", {"column/0": b"\0\1\3"}, "thing", {"generation": 3})
    with pytest.raises(StorageError, match=NAME):
        store.put_folder(NAME, tmp_path / "other")
    damaged = (tmp_path / "shard").read_bytes().replace(b"\0\1\2", b"\0\1\3")
    server.client().put_object(Bucket=BUCKET, Key=key_of(url, NAME), Body=damaged)
    with pytest.raises(CorruptDataError, match=NAME):
        store.get_folder(NAME, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    (tmp_path / "shard").write_bytes(damaged)
    with pytest.raises(CorruptDataError, match="shard"):
        store.put_folder(NAME.replace("3", "4"), tmp_path / "shard")


def test_files_without_a_folder(store, tmp_path):
    store.put_files("records/000000", "records", {"plans/iter-000000.json": b"{}"})
    copy = store.get_files("records/000000")
    assert {name: copy[name] for name in copy if name != "MANIFEST.json"} == {
        "plans/iter-000000.json": b"{}"
    }
    assert commit_copy(tmp_path / "r", copy).kind == "records"


def test_a_store_that_takes_and_shows_is_fit(store):
    store.check()
    assert json.loads(store.bucket.get("writer/last.json"))["pid"] > 0


def test_a_look_at_a_store_does_not_list_all_that_is_in_it_bug(store, monkeypatch):
    names, listed = store.bucket.names, []
    monkeypatch.setattr(
        store.bucket, "names", lambda under="": listed.extend(names(under)) or names(under)
    )
    store.bucket.put("games/iter-000000/shard-0000/zarr.json", b"{}")
    store.check()
    assert listed == ["writer/last.json"]


def test_a_bucket_that_does_not_exist_is_named(server):
    store = ObjectStore(Bucket("s3://no-such-bucket/x", server.endpoint))
    with pytest.raises(StorageError, match="s3://no-such-bucket/x"):
        store.check()


def test_a_store_of_which_one_may_only_read_is_named(server):
    store = ObjectStore(Bucket(URL, server.gate.endpoint, patience_s=60.0))
    server.gate.refuses_puts = True
    try:
        with pytest.raises(StorageError, match=r"writer/last\.json"):
            store.check()
    finally:
        server.gate.refuses_puts = False


@pytest.mark.parametrize("missing", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_missing_credentials_are_named_and_nobody_is_asked(server, monkeypatch, missing):
    monkeypatch.delenv(missing)
    before = server.gate.num_connections
    with pytest.raises(StorageError, match=f"{URL}.*AWS_ACCESS_KEY_ID"):
        Bucket(URL, server.gate.endpoint)
    assert server.gate.num_connections == before


def test_the_endpoint_may_come_from_the_environment(server, monkeypatch, url):
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    bucket = Bucket(url)
    bucket.put("a", b"1")
    assert key_of(url, "a") in server.object_keys()


@pytest.mark.slow
def test_a_store_that_is_away_is_asked_again_and_then_given_up(server, url):
    waited: list[str] = []
    bucket = Bucket(url, server.gate.endpoint, patience_s=2.5, while_waiting=waited.append)
    bucket.put("a", b"1")
    server.gate.close()
    try:
        with pytest.raises(StorageError, match="/a"):
            bucket.get("a")
    finally:
        server.gate.open()
    assert len(waited) >= 2
    assert all(f"{url} is away and asked again" in text for text in waited)
    assert bucket.get("a") == b"1"


def test_a_store_that_comes_back_goes_on(server, url):
    def back(text):
        if not is_back:
            is_back.append(text)
            server.gate.open()

    is_back: list[str] = []
    bucket = Bucket(url, server.gate.endpoint, patience_s=60.0, while_waiting=back)
    server.gate.close()
    bucket.put("a", b"1")
    assert is_back
    assert bucket.get("a") == b"1"


def test_who_waits_may_stop_waiting(server, url):
    def stop(text):
        raise ZeroDivisionError

    bucket = Bucket(url, server.gate.endpoint, patience_s=60.0, while_waiting=stop)
    server.gate.close()
    try:
        with pytest.raises(ZeroDivisionError):
            bucket.put("a", b"1")
    finally:
        server.gate.open()


def test_no_error_tells_the_secret(server, monkeypatch):
    bucket = Bucket("s3://no-such-bucket/x", server.endpoint)
    for action in (bucket.names, lambda: bucket.put("a", b""), lambda: bucket.get("a")):
        with pytest.raises(StorageError) as caught:
            action()
        assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in str(caught.value)
