"""From the fields of the form to the settings of a new campaign, and of one that is resumed."""

import pytest

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.errors import CampaignError, ConfigError
from chess_snn.flows.parameters import (
    campaign_to_resume,
    directory_of,
    form_settings,
    new_campaign,
    resumed_with,
)

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")
pytest.importorskip("mlflow")
pytest.importorskip("distributed")


FORM = form_settings(
    iterations=7, games_per_iteration=96, network="small", simulations=24, gpus=[0, 2], workers=4,
    seed=5,
)


def test_every_field_reaches_its_setting():
    config = load_config("gpu", settings=FORM)
    assert config.campaign.iterations == 7
    assert config.campaign.hours == 0, "the preset counts hours"
    assert config.campaign.seed == 5
    assert config.self_play.games_per_iteration == 96
    assert config.net.size == "small"
    assert (config.search.simulations_first, config.search.simulations_last) == (24, 24)
    assert config.execution.gpus == (0, 2)
    assert config.execution.workers == 4


def test_empty_fields_leave_the_preset_as_it_is():
    assert load_config("gpu", settings=form_settings()) == load_config("gpu")


def test_hours_take_the_place_of_iterations():
    assert load_config("smoke", settings=form_settings(hours=0.5)).campaign.hours == 0.5
    with pytest.raises(ConfigError, match="hours"):
        form_settings(iterations=3, hours=2.0)


def test_a_campaign_is_found_by_name_or_by_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("CHESS_SNN_HOME", str(tmp_path))
    assert directory_of("nightly", "") == tmp_path / "campaigns" / "nightly"
    assert directory_of("", str(tmp_path / "c")) == tmp_path / "c"
    assert directory_of("", "") is None
    with pytest.raises(ConfigError, match="nightly"):
        directory_of("nightly", str(tmp_path))
    with pytest.raises(ConfigError, match="campaigns/mine"):
        directory_of("", "campaigns/mine")


def test_the_same_form_resumes_its_campaign_as_a_schedule_does(tmp_path):
    config = load_config("gpu", settings=FORM)
    folder = CampaignFolder.create(tmp_path / "c", config)
    assert resumed_with(folder, FORM) == folder


def test_a_resumed_campaign_may_change_its_pace_and_nothing_else(tmp_path):
    folder = CampaignFolder.create(tmp_path / "c", load_config("smoke"))
    changed = resumed_with(folder, form_settings(workers=3))
    assert changed.config.execution.workers == 3
    assert CampaignFolder.open(folder.path) == changed
    with pytest.raises(ConfigError, match=r"campaign\.seed"):
        resumed_with(folder, form_settings(seed=9, workers=2))
    assert CampaignFolder.open(folder.path) == changed, "nothing was changed"


def test_a_retry_resumes_the_campaign_that_its_run_had_and_no_other(tmp_path):
    folder = CampaignFolder.create(tmp_path / "smoke-001", load_config("smoke"))
    other = CampaignFolder.create(tmp_path / "smoke-002", load_config("smoke"))
    assert campaign_to_resume(folder.path, folder.campaign_id) == folder
    assert campaign_to_resume(folder.path, None) == folder, "a first try with its name"
    assert campaign_to_resume(tmp_path / "new", None) is None
    for path in (other.path, tmp_path / "deleted"):
        with pytest.raises(CampaignError, match=folder.campaign_id):
            campaign_to_resume(path, folder.campaign_id)
    assert not (tmp_path / "deleted").exists()


def test_games_without_a_network_to_start_from_are_refused_before_there_is_a_folder(tmp_path):
    with pytest.raises(ConfigError, match="start_from"):
        new_campaign(tmp_path / "c", "smoke", [], "", with_games=True)
    assert not (tmp_path / "c").exists()
