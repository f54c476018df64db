"""Addresses and kinds of clusters: what is refused, and how that is said."""

import pytest

from chess_snn.campaign import load_config
from chess_snn.campaign.configuration.loading import build_config, config_values, format_toml
from chess_snn.campaign.configuration.pace import check_address
from chess_snn.errors import ConfigError


@pytest.mark.parametrize("address", [
    "tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:8786", "tls://box-a:8786",
    "tls://10.0.0.1:65535", "tcp://127.8.9.1:8786",
])
def test_loopback_may_be_in_clear_and_everything_by_tls(address):
    check_address("cluster.address", address)


@pytest.mark.parametrize("address", [
    "tcp://box-a:8786", "tcp://0.0.0.0:8786", "tcp://10.0.0.1:1", "", "box-a", "box-a:8786",
    "tls://box-a", "tls://:8786", "tls://box-a:port", "tls://box-a:²", "ucx://box-a:8786",
    "tls://box-a:0", "tls://box-a:65536",
])
def test_other_addresses_are_refused(address):
    with pytest.raises(ConfigError, match=r"cluster\.address"):
        check_address("cluster.address", address)


def test_the_kind_address_needs_an_address():
    with pytest.raises(ConfigError, match=r"cluster\.address"):
        load_config(settings=["cluster.kind=address"])


def test_removed_settings_are_read_from_campaigns_alone(tmp_path):
    values = config_values(load_config(settings=["execution.workers=7"]))
    values["cluster"] |= {"wait_s": 5.0}
    values["execution"] |= {"workers_per_device": 2, "self_play_device": "cpu"}
    assert build_config(values).execution.workers == 7
    file = tmp_path / "campaign.toml"
    file.write_text(format_toml(values | {"identity": {"id": "0123"}}))
    assert load_config(file=file) == build_config(values)
    file.write_text(format_toml(values))
    with pytest.raises(ConfigError, match=r"execution\.workers_per_device is gone"):
        load_config(file=file)


@pytest.mark.parametrize(("name", "instead"), [
    ("cluster.wait_s", "leave it out"), ("storage.object_store", "rclone"),
    ("cluster.training_machines", "torchrun"), ("self_play.resignation", "max_plies_last"),
    ("execution.workers_per_device", r"execution\.workers"),
    ("execution.self_play_device", r"execution\.device"),
    ("training.policy_loss", r"self_play\.teacher"),
])
def test_a_removed_setting_is_refused_with_its_replacement(name, instead):
    with pytest.raises(ConfigError, match=rf"{name} is gone: .*{instead}"):
        load_config(settings=[f"{name}=5"])
    with pytest.raises(ConfigError, match=rf"{name} is gone"):
        load_config(settings=[(name, 5)])


def test_more_ranks_than_micro_batches_are_refused():
    with pytest.raises(ConfigError, match=r"training_ranks = 3"):
        load_config(settings=[
            "execution.training_ranks=3", "training.batch_size=256", "training.micro_batch=128",
        ])
