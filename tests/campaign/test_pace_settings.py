"""Where the work is done may change when a campaign is resumed; what is learnt may not."""

import pytest

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.configuration.loading import change_pace, config_digest
from chess_snn.errors import ConfigError


def test_execution_may_change_and_is_kept(new_folder):
    folder = new_folder()
    changed = change_pace(folder.config, ["execution.workers=3", "cluster.wait_s=5"])
    assert folder.with_config(changed).campaign_id == folder.campaign_id
    again = CampaignFolder.open(folder.path)
    assert (again.campaign_id, again.config) == (folder.campaign_id, changed)
    assert again.config.execution.workers == 3
    assert "created" in (folder.path / "campaign.toml").read_text()


def test_what_results_depend_on_may_not_change():
    with pytest.raises(ConfigError, match=r"training\.batch_size cannot change"):
        change_pace(load_config(), ["training.batch_size=8"])


def test_a_setting_that_is_unknown_or_out_of_range_is_named():
    with pytest.raises(ConfigError, match=r"did you mean execution\.workers"):
        change_pace(load_config(), ["execution.worker=3"])
    with pytest.raises(ConfigError, match=r"execution\.workers must be"):
        change_pace(load_config(), ["execution.workers=-3"])


def test_the_digest_of_settings_tells_results_apart_and_not_machines():
    plain = load_config()
    assert config_digest(change_pace(plain, ["execution.workers=7"])) == config_digest(plain)
    assert config_digest(load_config(settings=["campaign.seed=7"])) != config_digest(plain)
