"""A campaign's copy in a real S3 server, and a folder made from it."""

import contextlib
import shutil

import pytest
from s3_server import BUCKET
from small_campaigns import begin, commit_shards, finish, make_campaign
from stored_files import copy_campaign

from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.backup import Backup, check_store, open_store, restore
from chess_snn.campaign.configuration.pace import StorageSettings
from chess_snn.data import is_committed, write_json
from chess_snn.data.commit import commit_archive
from chess_snn.errors import CampaignError, ConfigError, CorruptDataError, StorageError, UsageError

pytestmark = pytest.mark.usefixtures("s3_environment")


@pytest.fixture
def settings(server, tmp_path):
    """Each test has a prefix of its own."""
    return StorageSettings(object_store=f"s3://{BUCKET}/{tmp_path.name}", endpoint=server.endpoint)


@pytest.fixture
def store(settings):
    return open_store(settings)


@pytest.fixture
def folder(tmp_path):
    """One iteration is finished, and the next has one shard; a part of a match lies about."""
    made = make_campaign(tmp_path / "campaign", "evaluation.every=1")
    finish(made, 0)
    begin(made, 1)
    commit_shards(made, 1, count=1)
    write_json(made.match_part("gen-000002", "random", 0), {"part": 0})
    return made


def content_of(folder: CampaignFolder) -> dict[str, bytes]:
    """All that a campaign keeps for good."""
    return {
        path.relative_to(folder.path).as_posix(): path.read_bytes()
        for path in folder.path.rglob("*") if path.is_file() and ".part-" not in path.name
    }


def test_a_folder_is_made_anew_to_the_bit_and_goes_on_where_the_copy_ends(folder, store, tmp_path):
    sent = Backup(folder, store).send_missing()
    assert sent.num_folders == 2 + 1 + 1  # shards of both iterations and a checkpoint
    again = restore(store, tmp_path / "again")
    assert content_of(again) == content_of(folder)
    assert again.campaign_id == folder.campaign_id
    assert read_receipts(again) == read_receipts(folder)


@pytest.mark.parametrize("way", [".hidden/campaign", "elsewhere/../campaign"])
def test_records_of_a_campaign_reached_by_way_of_a_dotted_name_are_sent_bug(store, tmp_path, way):
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "elsewhere").mkdir()
    folder = make_campaign(tmp_path / way)
    finish(folder, 0)
    assert Backup(folder, store).send_missing().num_records > 0
    assert read_receipts(restore(store, tmp_path / "again")) == read_receipts(folder)


def test_what_was_sent_is_not_sent_again_by_this_process_or_the_next(folder, store):
    mirror = Backup(folder, store)
    mirror.send_missing()
    assert mirror.send_missing().num_bytes == 0
    later = Backup(folder, store)
    assert later.num_missing() == 0
    assert later.send_missing().num_bytes == 0
    finish(folder, 1)
    assert later.num_missing() == 2
    sent = later.send_missing()
    assert (sent.num_folders, sent.num_records > 0) == (2, True)
    assert Backup(folder, store).send_missing().num_bytes == 0


def test_a_receipt_is_in_the_store_after_all_that_it_names(folder, store, monkeypatch):
    mirror, bucket = Backup(folder, store), store.bucket
    put, put_new, order = bucket.put, bucket.put_new, []
    monkeypatch.setattr(bucket, "put", lambda name, c: order.append(name) or put(name, c))
    monkeypatch.setattr(bucket, "put_new", lambda name, c: order.append(name) or put_new(name, c))
    mirror.send_missing()
    is_record = [name.startswith("records/") for name in order]
    assert is_record == sorted(is_record)
    assert "records/000000/receipts/iter-000000.json" in order
    assert order[-1] == "records/000000/MANIFEST.json"
    assert sum(name.endswith("MANIFEST.json") for name in order) == 1 + 1
    assert sum("/shard-" in name for name in order) == 3, "a shard is one object"


def test_an_interrupted_round_is_gone_on_with(folder, store, monkeypatch, tmp_path):
    put_new, allowed = store.bucket.put_new, 2

    def cut_off(name, content):
        nonlocal allowed
        if not allowed:
            raise StorageError("the cable was pulled")
        allowed -= 1
        return put_new(name, content)

    mirror = Backup(folder, store)
    monkeypatch.setattr(store.bucket, "put_new", cut_off)
    with pytest.raises(StorageError, match="cable"):
        mirror.send_missing()
    monkeypatch.setattr(store.bucket, "put_new", put_new)
    assert mirror.send_missing().num_folders == 2
    assert content_of(restore(store, tmp_path / "again")) == content_of(folder)


def test_an_interrupted_restore_is_no_campaign_and_is_gone_on_with(folder, store, tmp_path):
    Backup(folder, store).send_missing()
    target, fetched = tmp_path / "again", []

    def interrupt(done, total):
        assert total == 4
        if done == 2:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        restore(store, target, interrupt)
    with pytest.raises(CampaignError, match="again"):
        CampaignFolder.open(target)
    first = {path: path.stat().st_ino for path in target.rglob("*") if path.is_file()}
    assert len(first) == 2
    again = restore(store, target, lambda done, total: fetched.append(done))
    assert content_of(again) == content_of(folder)
    assert all(path.stat().st_ino == inode for path, inode in first.items())


def test_shards_that_an_earlier_version_wrote_as_folders_are_sent_and_restored(store, tmp_path):
    stored = copy_campaign(tmp_path)
    assert stored.shard(0, 0).is_dir()
    Backup(stored, store).send_missing()
    again = restore(store, tmp_path / "again")
    assert content_of(again) == content_of(stored)
    assert Backup(again, store).num_missing() == 0


def test_a_prefix_holds_one_campaign(folder, store, tmp_path):
    Backup(folder, store).send_missing()
    other = make_campaign(tmp_path / "other")
    with pytest.raises(StorageError, match=folder.campaign_id):
        Backup(other, store)


def play_shard(folder: CampaignFolder, content: bytes) -> None:
    """The next one of the iteration that is under way."""
    commit_archive(folder.shard(1, 1), {"games": content}, "test", {})


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("differs", [False, True])
def test_of_two_folders_that_go_on_the_second_is_refused_where_its_games_differ_bug(
    folder, store, tmp_path, is_open, differs
):
    shutil.copytree(folder.path, tmp_path / "second")
    second = CampaignFolder.open(tmp_path / "second")
    mirror = Backup(second, store) if is_open else None
    play_shard(folder, b"some games")
    Backup(folder, store).send_missing()
    mirror = mirror or Backup(second, store)
    play_shard(second, b"other games" if differs else b"some games")
    if differs:
        with pytest.raises(StorageError, match="shard-0001"):
            mirror.send_missing()
    else:
        mirror.send_missing()


def test_a_damaged_shard_is_named_and_nothing_after_it_is_a_record(folder, store):
    shard = folder.shard(0, 0)
    shard.write_bytes(shard.read_bytes().replace(b'"kind": "test"', b'"kind": "tess"'))
    with pytest.raises(CorruptDataError, match="shard-0000"):
        Backup(folder, store).send_missing()
    assert store.committed("records/*") == set()


def test_a_damaged_record_does_not_hide_the_good_one_that_was_sent_bug(folder, store, tmp_path):
    Backup(folder, store).send_missing()
    plan = folder.plan(0)
    sound = plan.read_bytes()
    plan.write_bytes(sound.replace(b'"progress_last": 0.', b'"progress_last": 1.'))
    assert plan.read_bytes() != sound
    with pytest.raises(CorruptDataError, match=r"iter-000000\.json"):
        Backup(folder, store).send_missing()
    restored = restore(store, tmp_path / "restored")
    assert restored.plan(0).read_bytes() == sound


def test_records_of_a_store_cannot_be_written_elsewhere(folder, store, tmp_path):
    Backup(folder, store).send_missing()
    store.put_files("records/000001", "records", {"services/mlflow.db": b"x"})
    with pytest.raises(CorruptDataError, match=r"services/mlflow\.db"):
        restore(store, tmp_path / "again")
    assert not (tmp_path / "again" / "services").exists()


def test_a_store_without_a_campaign_is_named(store, tmp_path):
    with pytest.raises(StorageError):
        restore(store, tmp_path / "again")


def test_a_restore_beside_a_running_campaign_is_of_one_moment_bug(folder, store, tmp_path):
    mirror = Backup(folder, store)
    mirror.send_missing()

    def go_on(done, total):
        if done == 0:
            finish(folder, 1)
            mirror.send_missing()

    again = restore(store, tmp_path / "again", go_on)
    assert [receipt.iteration for receipt in read_receipts(again)] == [0]
    assert len(read_receipts(folder)) == 2
    for receipt in read_receipts(again):
        assert is_committed(again.checkpoint(receipt.training.generation))


@pytest.mark.parametrize(("taken", "error", "place"), [
    ("taken/campaign.toml", CampaignError, "taken"), ("taken/thesis.txt", CampaignError, "taken"),
    ("taken", UsageError, "taken"), ("taken", UsageError, "taken/campaign"),
])
def test_nothing_is_restored_into_what_is_there_bug(folder, store, tmp_path, taken, error, place):
    Backup(folder, store).send_missing()
    (tmp_path / taken).parent.mkdir(exist_ok=True)
    (tmp_path / taken).write_text("x")
    with pytest.raises(error, match=place):
        restore(store, tmp_path / place)


def test_a_store_that_refuses_is_named_before_a_campaign_begins(server, monkeypatch):
    check_store(StorageSettings())  # none
    with pytest.raises(StorageError, match="absent"):
        check_store(StorageSettings(object_store="s3://absent/x", endpoint=server.endpoint))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(StorageError, match="AWS_ACCESS_KEY_ID"):
        check_store(StorageSettings(object_store=f"s3://{BUCKET}/x", endpoint=server.endpoint))


@pytest.mark.parametrize("changes", [
    {"object_store": "games"}, {"object_store": "s3://bucket/../x y"},
    {"object_store": "s3://bucket", "endpoint": "minio:9000"},
    {"endpoint": "https://me:secret@minio"},
])
def test_settings_that_cannot_be_are_refused(changes):
    with pytest.raises(ConfigError) as caught:
        StorageSettings(**changes)
    assert "secret" not in str(caught.value)
