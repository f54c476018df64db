"""A campaign that was changed, or cannot be written, is refused before anything is done."""

import os
import shutil
import stat

import pytest
from signed_files import edit_config
from small_campaigns import MICRO

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.configuration.loading import config_values, format_toml
from chess_snn.campaign.integrity.gc import find_disposable
from chess_snn.campaign.integrity.preflight import check_before_run
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.campaign.stages.networks import FROZEN_SETTINGS
from chess_snn.data import read_manifest, staged_folder
from chess_snn.errors import CampaignError


@pytest.fixture(scope="module")
def first_generation(tmp_path_factory):
    """A campaign that has its first generation and nothing else; to be copied."""
    path = tmp_path_factory.mktemp("begun") / "c"
    prepare_first_generation(CampaignFolder.create(path, load_config(settings=MICRO)))
    return path


@pytest.fixture
def begun(first_generation, tmp_path) -> CampaignFolder:
    return CampaignFolder.open(shutil.copytree(first_generation, tmp_path / "c"))


@pytest.mark.fault(17)
@pytest.mark.parametrize(("old", "new", "named"), [
    ("learning_rate = 0.006\n", "learning_rate = 0.01\n",
     "training.learning_rate was 0.006 and is 0.01"),
    ("iterations = 2\n", "iterations = 3\n", "campaign.iterations was 2 and is 3"),
    ("games_per_shard = 3\n", "games_per_shard = 2\n", "self_play.games_per_shard was 3 and is 2"),
    ('size = "tiny"\n', 'size = "small"\n', "net.size was 'tiny' and is 'small'"),
    ("mirror = true\n", "", None),
    ("mirror = true\n", "mirror = false\n", "training.mirror was True and is False"),
])
def test_a_changed_setting_is_refused_with_its_old_and_new_value(begun, old, new, named):
    folder = edit_config(begun, old, new)
    if named is None:  # left out, it has the default that it had
        check_before_run(folder)
        return
    with pytest.raises(CampaignError) as refused:
        check_before_run(folder)
    message = str(refused.value)
    assert named in message
    assert f"chess-snn campaign start --config {folder.path / 'campaign.toml'}" in message


@pytest.mark.fault(17)
def test_all_changed_settings_are_named(begun):
    edit_config(begun, "clip_norm = 1.0\n", "clip_norm = 2.0\n")
    with pytest.raises(CampaignError, match=r"seed.* 3 .* 9.* training\.clip_norm"):
        check_before_run(edit_config(begun, "seed = 3\n", "seed = 9\n"))


def test_where_it_is_executed_may_change(begun):
    check_before_run(edit_config(begun, "workers = 0\n", "workers = 1\n"))


def test_before_anything_was_done_settings_may_change(new_folder):
    check_before_run(edit_config(new_folder(), "learning_rate = 0.006\n", "learning_rate = 0.01\n"))


def test_a_damaged_first_generation_is_left_to_whoever_mends_it(begun):
    manifest = begun.checkpoint(0) / "MANIFEST.json"
    manifest.write_text(manifest.read_text()[:-20])
    check_before_run(begun)


@pytest.mark.fault(17)
@pytest.mark.parametrize("damage", [
    lambda folder: (folder / "MANIFEST.json").write_text("{"), shutil.rmtree,
], ids=["damaged", "gone"])
def test_a_change_is_found_by_the_next_generation_where_the_first_cannot_say_bug(begun, damage):
    with staged_folder(begun.checkpoint(1)) as stage:
        stage.commit("checkpoint", {FROZEN_SETTINGS: config_values(begun.config)})
    damage(begun.checkpoint(0))
    check_before_run(begun)
    with pytest.raises(CampaignError, match=r"campaign\.iterations.* 2 .* 3"):
        check_before_run(edit_config(begun, "iterations = 2\n", "iterations = 3\n"))


def test_the_first_generation_holds_every_setting(begun):
    frozen = read_manifest(begun.checkpoint(0)).meta[FROZEN_SETTINGS]
    assert frozen == config_values(load_config(settings=MICRO))
    assert format_toml(frozen) in (begun.path / "campaign.toml").read_text()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize("place", [".", "checkpoints", "services"])
def test_a_folder_that_cannot_be_written_is_named(begun, place):
    closed = begun.path / place
    closed.mkdir(exist_ok=True)
    mode = closed.stat().st_mode
    closed.chmod(mode & ~stat.S_IWUSR)
    try:
        with pytest.raises(CampaignError, match=str(closed)):
            check_before_run(begun)
    finally:
        closed.chmod(mode)


def test_under_a_changed_setting_nothing_may_go_and_verify_names_it_bug(begun):
    changed = edit_config(begun, "iterations = 2\n", "iterations = 1\n")
    with pytest.raises(CampaignError, match=r"campaign\.iterations"):
        find_disposable(changed)
    assert [(found.kind, found.path) for found in verify_campaign(changed).damage] == [
        ("setting", "campaign.toml")
    ]
