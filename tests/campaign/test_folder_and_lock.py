"""One folder, one identity, one writer; leftovers of the dead are swept, the rest is left alone."""

import resource
import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from small_campaigns import MICRO

from chess_snn.campaign import CampaignFolder, campaign_lock, load_config
from chess_snn.campaign.configuration.loading import format_toml, read_toml
from chess_snn.campaign.integrity.gc import sweep_leftovers
from chess_snn.campaign.store.naming import campaigns_home, claim_campaign_path
from chess_snn.campaign.store.typed_json import read_numbered
from chess_snn.data import read_json, write_json
from chess_snn.errors import CampaignError, CampaignLockedError, CorruptDataError, UsageError

NUM_STARTS = 8


def test_opening_finds_what_was_created_even_after_a_move(folder):
    assert CampaignFolder.open(folder.path) == folder
    moved = folder.path.rename(folder.path.with_name("elsewhere"))
    opened = CampaignFolder.open(moved)
    assert (opened.campaign_id, opened.config) == (folder.campaign_id, folder.config)
    assert (opened.path, opened.name) == (moved, "elsewhere")


@pytest.mark.parametrize(("name", "value"), [
    ("id", "0" * 32), ("created", "2020-01-01T00:00:00+00:00"), ("digest", None),
])
def test_an_identity_that_was_changed_is_refused_bug(new_folder, name, value):
    """The campaign with another digit was recorded as another one."""
    path = new_folder().path / "campaign.toml"
    body = read_toml(path)
    body["identity"][name] = value
    if value is None:
        del body["identity"][name]
    path.write_text(format_toml(body))
    with pytest.raises(CampaignError, match="identity"):
        CampaignFolder.open(path.parent)


def test_campaigns_of_one_configuration_have_their_own_identity(new_folder):
    assert new_folder("a").campaign_id != new_folder("b").campaign_id


def test_one_of_several_starts_at_the_same_instant_gets_a_folder_bug(tmp_path):
    config, at_once = load_config(settings=MICRO), Barrier(NUM_STARTS)

    def start(path):
        at_once.wait()
        try:
            return CampaignFolder.create(path, config).campaign_id
        except CampaignError:
            return None

    with ThreadPoolExecutor(NUM_STARTS) as threads:
        for number in range(5):
            path = tmp_path / str(number)
            begun = [found for found in threads.map(start, NUM_STARTS * [path]) if found]
            assert begun == [CampaignFolder.open(path).campaign_id]
            assert [entry.name for entry in path.iterdir()] == ["campaign.toml"]


def test_starts_at_the_same_instant_get_folders_of_their_own_bug(tmp_path):
    at_once = Barrier(NUM_STARTS)

    def claim(parent):
        at_once.wait()
        return claim_campaign_path("smoke", parent)

    with ThreadPoolExecutor(NUM_STARTS) as threads:
        claimed = set(threads.map(claim, NUM_STARTS * [tmp_path / "campaigns"]))
    assert {path.name for path in claimed} == {f"smoke-{n + 1:03d}" for n in range(NUM_STARTS)}
    assert claimed == set((tmp_path / "campaigns").iterdir())


def test_campaigns_below_a_file_are_refused(tmp_path):
    (tmp_path / "campaigns").touch()
    with pytest.raises(UsageError, match="smoke-001"):
        claim_campaign_path("smoke", tmp_path / "campaigns")


def test_a_folder_that_a_killed_start_left_can_be_started_in_bug(new_folder, tmp_path, dead_pid):
    path = tmp_path / "campaign"
    path.mkdir()
    leftover = f".tmp-campaign.toml@{socket.gethostname()}-{dead_pid}-00000000"
    (path / leftover).write_text("[identity]")
    (path / "mine").touch()
    with pytest.raises(CampaignError):
        new_folder("campaign")
    (path / "mine").unlink()
    (path / leftover).write_text("[identity]")
    assert CampaignFolder.open(new_folder("campaign").path).path == path
    assert [entry.name for entry in path.iterdir()] == ["campaign.toml"]


@pytest.mark.fault(12)
def test_a_lock_on_a_full_disk_is_one_line_bug(folder):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with (
            pytest.raises(CampaignError, match="lock"),
            campaign_lock(folder),
        ):
            pytest.fail("locked without a holder")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with campaign_lock(folder):
        pass


@pytest.mark.fault(16)
def test_a_second_writer_is_refused_until_the_first_is_killed(folder, lock_elsewhere):
    holder = lock_elsewhere(folder)
    with pytest.raises(CampaignLockedError, match=str(holder.pid)), campaign_lock(folder):
        pytest.fail("two writers")
    holder.kill()
    holder.wait()
    with campaign_lock(folder):
        pass


def test_a_lock_is_free_after_its_block_and_after_an_error_in_it(folder):
    with pytest.raises(ZeroDivisionError), campaign_lock(folder):
        1 / 0  # noqa: B018
    with campaign_lock(folder), pytest.raises(CampaignLockedError), campaign_lock(folder):
        pytest.fail("two writers in one process")


def test_unnamed_campaigns_are_numbered(tmp_path, monkeypatch):
    assert claim_campaign_path("smoke", tmp_path) == tmp_path / "smoke-001"
    assert claim_campaign_path("smoke", tmp_path) == tmp_path / "smoke-002"
    assert claim_campaign_path("cpu", tmp_path) == tmp_path / "cpu-001"
    monkeypatch.setenv("CHESS_SNN_HOME", str(tmp_path))
    assert campaigns_home() == tmp_path / "campaigns"
    monkeypatch.delenv("CHESS_SNN_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert str(campaigns_home()) == "/home/somebody/chess-snn/campaigns"


def test_leftovers_of_the_dead_are_swept_and_nothing_else(folder, dead_pid):
    shards = folder.shard(0, 0).parent
    leftover = shards / f".tmp-shard-0000@{socket.gethostname()}-{dead_pid}-00000000"
    elsewhere = shards / f".tmp-shard-0001@another-host-{dead_pid}-00000000"
    committed = folder.shard(0, 2)
    for path in (leftover, elsewhere, committed):
        path.mkdir(parents=True)
    receipt = folder.receipt(0).parent / f".tmp-x.json@{socket.gethostname()}-{dead_pid}-00000000"
    receipt.parent.mkdir()
    receipt.touch()
    assert sweep_leftovers(folder) == 2
    assert (leftover.exists(), receipt.exists()) == (False, False)
    assert elsewhere.exists()
    assert committed.exists()
    assert sweep_leftovers(folder) == 0


# Numbered files are read once each, and again only where they were replaced.


@pytest.fixture
def files(tmp_path):
    """A log of the files in ``tmp_path/log``, with the numbers that were read so far."""
    folder, read = tmp_path / "log", []

    def path_of(number):
        return folder / f"{number}.json"

    def read_one(number):
        found = read_json(path_of(number))["n"]
        read.append(number)
        return found

    return lambda: read_numbered(path_of, read_one), path_of, read


def test_each_is_read_once_as_it_comes(files):
    entries, path_of, read = files
    assert entries() == []
    for number in range(3):
        write_json(path_of(number), {"n": number})
        assert entries() == entries() == list(range(number + 1))
    assert read == [0, 1, 2]


def test_a_gap_ends_the_list_until_it_is_filled(files):
    entries, path_of, _ = files
    for number in (0, 2):
        write_json(path_of(number), {"n": number})
    assert entries() == [0]
    write_json(path_of(1), {"n": 1})
    assert entries() == [0, 1, 2]


def test_what_was_replaced_or_removed_is_forgotten(files):
    entries, path_of, read = files
    for number in range(4):
        write_json(path_of(number), {"n": number})
    assert entries() == [0, 1, 2, 3]
    write_json(path_of(2), {"n": 12})
    assert entries() == [0, 1, 12, 3]
    assert read == [0, 1, 2, 3, 2]
    path_of(1).unlink()
    assert entries() == [0]


def test_a_damaged_one_is_named_each_time(files):
    entries, path_of, _ = files
    write_json(path_of(0), {"n": 0})
    path_of(1).write_text("{")
    for _ in range(2):
        with pytest.raises(CorruptDataError, match=r"1\.json"):
            entries()
    write_json(path_of(1), {"n": 1})
    assert entries() == [0, 1]
