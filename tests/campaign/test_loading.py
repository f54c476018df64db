"""Defaults, preset, file and single settings, in this order; which may change on resume."""

import os
import shutil
import stat
import tomllib
from dataclasses import fields

import pytest
from signed_files import edit_config
from small_campaigns import MICRO

from chess_snn.campaign import CampaignConfig, CampaignFolder, load_config
from chess_snn.campaign.configuration.loading import (
    build_config,
    change_pace,
    config_digest,
    config_values,
    format_toml,
)
from chess_snn.campaign.integrity.gc import find_disposable
from chess_snn.campaign.integrity.preflight import check_before_run
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.campaign.stages.networks import FROZEN_SETTINGS
from chess_snn.data import staged_folder
from chess_snn.errors import CampaignError, ConfigError
from chess_snn.known import PRESETS
from chess_snn.nets import NetConfig, net_config


def test_later_sources_win(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[campaign]\niterations = 7\n[training]\nbatch_size = 64\n")
    assert load_config() == CampaignConfig()
    preset = load_config("smoke")
    assert preset.campaign.iterations == 4 != CampaignConfig().campaign.iterations
    with_file = load_config("smoke", file)
    assert (with_file.campaign.iterations, with_file.training.batch_size) == (7, 64)
    assert with_file.self_play == preset.self_play, "what the file leaves out is the preset's"
    with_setting = load_config("smoke", file, ["campaign.iterations=9"])
    assert (with_setting.campaign.iterations, with_setting.training.batch_size) == (9, 64)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_toml(name):
    config = load_config(name)
    assert build_config(tomllib.loads(format_toml(config_values(config)))) == config


def test_settings_are_typed_as_toml_and_bare_words_are_texts():
    config = load_config(settings=[
        "net.size=small", 'net.precision="fp32"', "training.learning_rate=1e-3",
        'evaluation.opponents=["random", "minimax:1"]',
    ])
    assert (config.net.size, config.net.precision) == ("small", "fp32")
    assert config.training.learning_rate == 1e-3
    assert config.evaluation.opponents == ("random", "minimax:1")


SHAPE = {
    "ticks": 3, "levels": 5, "decay": 0.6, "threshold": 0.7, "surrogate_alpha": 4.0,
    "rule_planes": True, "target_readout": True,
}


def setting(name):
    return f"net.{name}={str(SHAPE[name]).lower()}"


def test_fields_of_the_shape_are_settings_and_the_size_gives_the_rest():
    others = {"activation", "blocks", "channels", "value_channels", "value_hidden"}
    assert {*SHAPE} | others == {field.name for field in fields(NetConfig)}
    whole = load_config(settings=["net.size=2x24", *(setting(name) for name in SHAPE)])
    assert whole.net.network() == NetConfig(blocks=2, channels=24, **SHAPE)
    assert build_config(tomllib.loads(format_toml(config_values(whole)))) == whole
    for name, value in SHAPE.items():
        config = load_config(settings=["net.size=small", setting(name)])
        assert config.net.network() == net_config("small", **{name: value})
    baseline = load_config(settings=["net.size=2x64", "net.activation=relu"])
    assert baseline.net.network() == net_config("small", blocks=2).baseline()


@pytest.mark.parametrize(("stored", "expected"), [
    ({"size": "base", "blocks": 10, "channels": 128, "ticks": 0}, {"size": "base"}),
    ({"size": "small", "blocks": 0, "channels": 48, "ticks": 3}, {"size": "6x48", "ticks": 3}),
    ({"channels": 24, "activation": "ilif"}, {"size": "3x24", "ticks": 1, "activation": "ilif"}),
    ({"blocks": 2, "activation": "relu"}, {"size": "2x32", "ticks": 1, "activation": "relu"}),
])
def test_blocks_and_channels_of_an_older_campaign_are_its_size(stored, expected):
    assert build_config({"net": stored}).net.network() == net_config(**expected)


def test_a_network_grows_after_shares_of_the_campaign_and_keeps_its_ticks():
    net = load_config(settings=["net.size=2x8", 'net.growth=["tiny@0.25", "6x64@0.5"]']).net
    sizes = [net.at(progress).network() for progress in (0.0, 0.24, 0.25, 0.49, 0.5, 1.0)]
    assert [shape.size for shape in sizes] == ["2x8", "2x8", "tiny", "tiny", "small", "small"]
    assert {shape.ticks for shape in sizes} == {net.network().ticks} != {net_config("small").ticks}


@pytest.mark.parametrize("growth", [
    '["small"]', '["small@soon"]', '["huge@0.5"]', '["3x16@0.5"]', '["2x64@0.5"]', '["tiny@0.5"]',
    '["small@0"]', '["small@1"]', '["small@nan"]', '["small@0.5", "base@0.5"]',
    '["base@0.3", "small@0.5"]',
])
def test_growth_to_nothing_larger_is_refused(growth):
    with pytest.raises(ConfigError, match=r"net\.(growth|size)"):
        load_config(settings=[f"net.growth={growth}"])


def test_the_trees_of_the_last_matches_are_counted_only_where_they_are_played():
    many = "evaluation.final_simulations=100000"
    load_config(settings=[many])
    with pytest.raises(ConfigError, match="100000"):
        load_config(settings=[many, "evaluation.final_openings=20"])


# Where the work is done may change when a campaign is resumed; what is learnt may not.


def test_execution_may_change_and_is_kept(folder):
    changed = change_pace(folder.config, ["execution.workers=3", "execution.overlap=false"])
    assert folder.with_config(changed).campaign_id == folder.campaign_id
    again = CampaignFolder.open(folder.path)
    assert (again.campaign_id, again.config) == (folder.campaign_id, changed)
    assert again.config.execution.workers == 3
    assert "created" in (folder.path / "campaign.toml").read_text()


@pytest.mark.parametrize(("setting", "named"), [
    ("training.batch_size=8", r"training\.batch_size"),  # results depend on it
    ("execution.worker=3", r"execution\.workers"), ("execution.workers=-3", r"execution\.workers"),
])
def test_what_may_not_change_is_named(setting, named):
    with pytest.raises(ConfigError, match=named):
        change_pace(load_config(), [setting])


def test_the_digest_of_settings_tells_results_apart_and_not_machines():
    plain = load_config()
    assert config_digest(change_pace(plain, ["execution.workers=7"])) == config_digest(plain)
    assert config_digest(load_config(settings=["campaign.seed=7"])) != config_digest(plain)


# A campaign that was changed, or cannot be written, is refused before anything is done.


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
     ("training.learning_rate", "0.006", "0.01")),
    ('size = "1x4"\n', 'size = "small"\n', ("net.size", "'1x4'", "'small'")),
    ("finds_wins = true\n", "", None),
    ("finds_wins = true\n", "finds_wins = false\n", ("search.finds_wins", "True", "False")),
])
def test_a_changed_setting_is_refused_with_its_old_and_new_value(begun, old, new, named):
    folder = edit_config(begun, old, new)
    if named is None:  # left out, it has the default that it had
        check_before_run(folder)
        return
    with pytest.raises(CampaignError) as refused:
        check_before_run(folder)
    assert all(part in str(refused.value) for part in (*named, f"{folder.path}/campaign.toml"))


@pytest.mark.fault(17)
def test_all_changed_settings_are_named(begun):
    edit_config(begun, "warmup_steps = 50\n", "warmup_steps = 9\n")
    with pytest.raises(CampaignError, match=r"seed.* training\.warmup_steps"):
        check_before_run(edit_config(begun, "seed = 3\n", "seed = 9\n"))


def test_an_earlier_campaign_without_search_or_teacher_is_read_and_not_run(new_folder):
    line = "value_weight = 1.0\n"
    stored = new_folder("stored", "search.kind=policy")
    folder = edit_config(stored, line, f'{line}policy_loss = "advantage"\n')
    with pytest.raises(ConfigError, match=r"self_play\.teacher"):
        check_before_run(folder)


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
    with pytest.raises(CampaignError, match=r"campaign\.iterations"):
        check_before_run(edit_config(begun, "iterations = 2\n", "iterations = 3\n"))


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
