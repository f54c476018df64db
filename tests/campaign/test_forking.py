"""A fork has the past of its parent and a future of its own."""

import json
import shutil

import pytest
from small_campaigns import play_iteration, stage_rebuilder

from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.extending import extend_campaign
from chess_snn.campaign.forking import fork_campaign, fork_config
from chess_snn.campaign.integrity.gc import dispose, find_disposable
from chess_snn.campaign.integrity.preflight import check_settings
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.stages.networks import game_of
from chess_snn.data import read_manifest, read_shard
from chess_snn.errors import CampaignError, ConfigError, DamagedFolderError, UsageError
from chess_snn.training import load_trainer


def fork(parent: CampaignFolder, at: int, *settings: str) -> CampaignFolder:
    config = fork_config(parent, at, settings)
    return fork_campaign(parent, parent.path.with_name(f"fork-{at}"), at, config)


def digest_of(folder: CampaignFolder, generation: int) -> str:
    return str(read_manifest(folder.checkpoint(generation)).meta["weights_digest"])


def test_without_a_change_it_comes_out_as_its_parent(tmp_path, played_campaign):
    shutil.copytree(played_campaign.path, tmp_path / "parent")
    parent = CampaignFolder.open(tmp_path / "parent")
    forked = fork(parent, 1)
    assert forked.campaign_id != parent.campaign_id
    assert verify_campaign(forked).is_whole
    assert read_receipts(forked) == read_receipts(parent)[:1]
    assert not forked.shard(1, 0).exists()
    assert not forked.checkpoint(2).exists()
    play_iteration(forked, 1)
    assert verify_campaign(forked).is_whole
    for shard in parent.path.glob("games/iter-*/shard-*"):
        theirs, ours = (read_shard(root / parent.name_of(shard))[0]
                        for root in (parent.path, forked.path))
        assert (theirs.states == ours.states).all()
        assert (theirs.actions == ours.actions).all()
    assert [digest_of(forked, g) for g in range(3)] == [digest_of(parent, g) for g in range(3)]


def test_changed_settings_hold_from_there_on(oldest_campaign):
    parent = oldest_campaign
    forked = fork(parent, 1, "training.learning_rate=0.0001", "campaign.iterations=3")
    inode = (parent.checkpoint(1) / "MANIFEST.json").stat().st_ino
    assert (forked.checkpoint(1) / "MANIFEST.json").stat().st_ino == inode
    assert [plan["progress_last"] for plan in _plans(forked)] == [0.5]
    play_iteration(forked, 1)
    assert [plan["progress_last"] for plan in _plans(forked)] == [0.5, 0.75]
    trainer = load_trainer(forked.checkpoint(2), game_of(forked))
    assert trainer.settings.learning_rate == 0.0001
    assert digest_of(forked, 2) != digest_of(parent, 2)
    check_settings(forked)
    forked.with_config(parent.config)
    with pytest.raises(CampaignError, match=r"training\.learning_rate"):
        check_settings(CampaignFolder.open(forked.path))
    forked.with_config(forked.config)
    assert verify_campaign(forked).is_whole
    assert verify_campaign(parent).is_whole


def _plans(folder: CampaignFolder) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted((folder.path / "plans").iterdir())]


@pytest.mark.parametrize(("at", "settings", "said"), [
    (3, (), "cannot be forked at iteration 3: it has finished 2 iterations; fork it at 0 to 2"),
    (-1, (), "cannot be forked at iteration -1"),
    (2, (), "has nothing left to do; let it last longer"),
    (1, ("net.ticks=4",), r"net\.ticks is 0"),
    (1, ("campaign.game=go",), "unknown game|campaign.game"),
    (1, ("supervised.epochs=3",), r"supervised\.epochs is 1"),
    (1, ("self_play.games_per_iteration=9",), "cannot change self_play.games_per_iteration"),
])
def test_what_cannot_be_forked_is_refused_and_nothing_is_made(
    tmp_path, oldest_campaign, at, settings, said
):
    parent = oldest_campaign
    with pytest.raises((UsageError, ConfigError), match=said):
        fork(parent, at, *settings)
    assert not list(tmp_path.glob("*fork*"))


def test_a_damaged_past_makes_no_fork(tmp_path, oldest_campaign):
    parent = oldest_campaign
    (parent.shard(0, 1) / "MANIFEST.json").write_text("{")
    with pytest.raises(DamagedFolderError):
        fork(parent, 1)
    assert not list(tmp_path.glob(".tmp-*"))


def test_what_the_parent_removed_the_fork_knows_to_be_removed(oldest_campaign):
    parent = oldest_campaign
    dispose(parent, find_disposable(parent))
    extend_campaign(parent, iterations=4)
    forked = fork(parent, 2)
    assert forked.config.campaign.iterations == 4
    assert verify_campaign(forked).is_whole
    play_iteration(forked, 2)
    assert verify_campaign(forked).is_whole


def test_damage_is_rebuilt_from_the_parent(oldest_campaign):
    parent = oldest_campaign
    forked = fork(parent, 1)
    rebuilder = stage_rebuilder(forked, [])
    for path in (forked.shard(0, 0), forked.checkpoint(1), forked.checkpoint(0)):
        shutil.rmtree(path)
        rebuilder.rebuild(DamagedFolderError("gone", path))
    assert verify_campaign(forked).is_whole
