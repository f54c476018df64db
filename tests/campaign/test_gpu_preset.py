"""The preset for GPUs, which several GPUs share, and what `campaign estimate` says of it."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.machine import cost
from chess_snn.campaign.machine.training_launch import choose_ranks
from chess_snn.campaign.machine.workers import config_here
from chess_snn.cli.main import app
from chess_snn.devices import SIMULATED_GPUS


@pytest.fixture
def gpu_preset(monkeypatch):
    """The preset `gpu` with some settings, as a campaign with so many GPUs would have it."""

    def load(num_gpus, *settings):
        monkeypatch.setenv(SIMULATED_GPUS, str(num_gpus))
        return config_here(partial(load_config, "gpu", settings=settings))

    return load


@pytest.mark.parametrize(("num_gpus", "games"), [(1, 1024), (2, 1448), (3, 1774), (8, 2896)])
def test_all_gpus_share_the_work_of_the_gpu_preset(gpu_preset, num_gpus, games):
    config, one = gpu_preset(num_gpus), load_config("gpu")
    assert config.self_play.games_per_iteration == games
    assert choose_ranks(config, num_gpus).number == config.training.num_micro_batches == num_gpus
    assert config.self_play.num_shards(2 * num_gpus) == 2 * num_gpus, "two workers each"
    # A game teaches the same: only these two settings differ.
    assert one == replace(
        config,
        self_play=replace(config.self_play, games_per_iteration=1024),
        training=replace(config.training, micro_batch=512),
    )


@pytest.mark.parametrize(("settings", "games", "micro_batch"), [
    (["self_play.games_per_iteration=500"], 500, 64),
    (["training.micro_batch=512"], 2896, 512),
    (["training.batch_size=2048"], 2896, 256),
    (["execution.gpus=[0,1]"], 1448, 256),
    (["cluster.kind=address", "cluster.address=tcp://127.0.0.1:8786"], 1024, 512),
])
def test_settings_that_are_given_are_not_divided(gpu_preset, settings, games, micro_batch):
    config = gpu_preset(8, *settings)
    assert config.self_play.games_per_iteration == games
    assert config.training.micro_batch == micro_batch


def test_another_number_of_gpus_does_not_change_a_campaign(gpu_preset, tmp_path, monkeypatch):
    begun = CampaignFolder.create(tmp_path / "campaign", gpu_preset(8))
    monkeypatch.setenv(SIMULATED_GPUS, "1")
    resumed = CampaignFolder.open(begun.path).config
    assert resumed == begun.config
    assert choose_ranks(resumed, 1).number == 1
    # Its file, given for another campaign, says the same anywhere.
    file = begun.path / "campaign.toml"
    assert config_here(partial(load_config, "gpu", file)) == begun.config


def test_other_presets_do_not_depend_on_the_devices(monkeypatch):
    monkeypatch.setenv(SIMULATED_GPUS, "8")
    for preset in ("smoke", "cpu"):
        assert config_here(partial(load_config, preset)) == load_config(preset)


TINY = (
    "net.size=1x4", "self_play.concurrent_games=4",
    "search.simulations_first=2", "search.simulations_last=2", "training.batch_size=64",
    "campaign.hours=0", "campaign.iterations=2",
)


@pytest.mark.slow
def test_an_estimate_counts_all_gpus(monkeypatch):
    """Eight workers play and eight processes train, each as fast as the one that is measured."""
    monkeypatch.setenv(SIMULATED_GPUS, "8")
    trained = []
    train = cost.measure_training

    def measure(config, *others):
        trained.append(config.training)
        train(config, *others)
        return SimpleNamespace(samples_per_s=100.0)

    monkeypatch.setattr(cost, "measure_training", measure)
    settings = [part for setting in TINY for part in ("--set", setting)]
    said = CliRunner().invoke(app, ["campaign", "estimate", "--preset", "gpu", *settings])
    assert said.exit_code == 0, said.output
    assert "2,896 games" in said.output
    assert "800 samples/s" in said.output
    assert [(training.batch_size, training.micro_batch) for training in trained] == [(8, 8)]
