"""A power cut at any moment leaves what is stored whole or absent, and what was committed there."""

import os

import numpy as np
import pytest
from made_records import make_records
from recorded_disk import faults
from small_campaigns import begin, finish_without_games, make_campaign, small_network

from chess_snn import failpoints
from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.integrity.gc import Disposable, dispose
from chess_snn.campaign.store.notes import quarantine, read_notes, read_removals
from chess_snn.campaign.store.plans import Length, newest_extension, read_plans, write_extension
from chess_snn.data import (
    copy_folder,
    create_text,
    link_folder,
    read_json,
    read_shard,
    staged_folder,
    verify_folder,
    write_json,
    write_shard,
)
from chess_snn.failpoints import Armed
from chess_snn.games import get_game
from chess_snn.training import Trainer, TrainingSettings, check_checkpoint, save_checkpoint

pytestmark = pytest.mark.fault(26)

SHARD = "games/iter-000000/shard-0000"
FOLDER = "deep/folder"
CHECKPOINT = "checkpoints/gen-000000"
RECORDS = make_records(np.random.default_rng(0), [3])


def commit_shard(root):
    write_shard(root / SHARD, RECORDS, {"game": "chess"})


def commit_folder(root):
    with staged_folder(root / FOLDER) as stage:
        (stage.path / "sub").mkdir()
        (stage.path / "sub" / "one").write_text("1" * 60)
        (stage.path / "two").write_text("2" * 60)
        stage.commit("checkpoint", {})


def commit_checkpoint(root):
    trainer = Trainer(get_game("chess"), small_network(seed=0), TrainingSettings(), seed=0)
    save_checkpoint(root / CHECKPOINT, trainer, meta={})


def digests(path):
    """Those of a committed folder; None where nothing is."""
    return verify_folder(path).sha256s if os.path.lexists(path) else None


def read_games(root):
    return digests(root / SHARD) and read_shard(root / SHARD)[0].num_positions


def read_files(root):
    return digests(root / FOLDER)


def read_weights(root):
    path = root / CHECKPOINT
    return digests(path) and check_checkpoint(path).meta["weights_digest"]


@pytest.mark.parametrize(("commit", "read"), [
    (commit_shard, read_games), (commit_folder, read_files), (commit_checkpoint, read_weights),
])
def test_an_artifact_is_whole_or_absent(tmp_path, commit, read):
    assert faults(tmp_path, [commit], read, is_sealed_last=True) == []


@pytest.mark.parametrize(("commit", "read", "num_syncs"), [
    (commit_shard, read_games, 5), (commit_folder, read_files, 8),
])
def test_no_sync_of_an_artifact_can_be_left_out(tmp_path, commit, read, num_syncs):
    for skipped in range(num_syncs):
        folder = tmp_path / str(skipped)
        assert faults(folder, [commit], read, skipped, is_sealed_last=True), skipped


@pytest.mark.parametrize(("commit", "place"), [(commit_shard, SHARD), (commit_folder, FOLDER)])
def test_copies_and_links_are_whole_or_absent(tmp_path, commit, place):
    def copy(root):
        copy_folder(root / place, root / "copy" / "thing")

    def link(root):
        link_folder(root / place, root / "link" / "thing")

    def read(root):
        return [digests(root / name) for name in (place, "copy/thing", "link/thing")]

    assert faults(tmp_path, [commit, copy, link], read) == []


@pytest.mark.parametrize(("commit", "read", "kind"), [
    (commit_shard, read_games, "shard"), (commit_folder, read_files, "checkpoint"),
])
def test_the_next_writer_keeps_what_a_killed_one_renamed(
    tmp_path, monkeypatch, commit, read, kind
):
    monkeypatch.setenv(failpoints.DIRECTORY_VARIABLE, str(tmp_path))
    monkeypatch.setitem(failpoints._ARMED, f"{kind}.renamed", Armed("raise"))
    assert faults(tmp_path, [commit, commit], read) == []


def read_state(root):
    path = root / "state" / "state.json"
    return read_json(path) if path.exists() else None


def write_state(value):
    return lambda root: write_json(root / "state" / "state.json", {"value": value, "of": "x" * 40})


def test_a_file_is_old_or_new(tmp_path):
    def create(root):
        assert not create_text(root / "state" / "state.json", "{}")

    assert faults(tmp_path, [write_state(1), write_state(2), create], read_state) == []


def test_no_sync_of_a_file_can_be_left_out(tmp_path):
    for skipped in range(3):
        assert faults(tmp_path / str(skipped), [write_state(1)], read_state, skipped), skipped


def test_records_of_a_campaign_are_old_or_new(tmp_path):
    def plan(root):
        begin(CampaignFolder.open(root / "campaign"), 0)

    def finish(root):
        finish_without_games(CampaignFolder.open(root / "campaign"), 0, champion=1)

    def extend(root):
        write_extension(CampaignFolder.open(root / "campaign"), Length(9), 0.5)

    def read(root):
        if not (root / "campaign" / "campaign.toml").exists():
            return None
        folder = CampaignFolder.open(root / "campaign")
        return len(read_plans(folder)), len(read_receipts(folder)), newest_extension(folder)

    steps = [lambda root: make_campaign(root / "campaign"), plan, finish, extend]
    assert faults(tmp_path, steps, read) == []


@pytest.mark.parametrize("move", [
    lambda folder, path: quarantine(folder, path, "why"),
    lambda folder, path: dispose(folder, [Disposable("games", path, 1, "why")]),
], ids=["quarantine", "gc"])
def test_an_artifact_that_is_gone_has_a_note(tmp_path, move):
    def take(root):
        move(CampaignFolder.open(root), root / SHARD)

    def read(root):
        if os.path.lexists(root / SHARD):
            return read_games(root)
        if not (root / "campaign.toml").exists():
            return None
        folder = CampaignFolder.open(root)
        return [note.event for note in read_notes(folder)], list(read_removals(folder))

    assert faults(tmp_path, [make_campaign, commit_shard, take], read) == []
