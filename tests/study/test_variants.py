"""Which networks a study compares, and how much they train."""

from dataclasses import dataclass
from itertools import pairwise

import pytest

from chess_snn.campaign import load_config
from chess_snn.errors import ConfigError, UsageError
from chess_snn.study.plan import _affordable
from chess_snn.study.variants import make_variants

INTEGER = load_config(settings=["net.activation=ilif", "net.precision=int8"])


def shapes(variants):
    return {each.name: each.config.net.network() for each in variants}


def test_each_axis_changes_one_thing():
    found = shapes(make_variants(INTEGER, ticks=(1, 4), levels=(2,), relu=True))
    assert list(found) == ["ticks-1", "ticks-4", "levels-2", "relu"]
    assert (found["ticks-4"].activation, found["ticks-4"].ticks) == ("lif", 4)
    assert (found["levels-2"].activation, found["levels-2"].levels) == ("ilif", 2)
    assert not found["relu"].is_spiking
    assert len({(each.blocks, each.channels) for each in found.values()}) == 1


def test_a_pair_is_the_network_of_the_settings_and_its_baseline():
    spiking, baseline = make_variants(INTEGER, pair=True, relu=True)
    assert spiking.config == INTEGER
    assert baseline.config.net.network() == INTEGER.net.network().baseline()
    assert baseline.config.training == INTEGER.training
    with pytest.raises(UsageError, match="lif or ilif"):
        make_variants(baseline.config, pair=True)


def test_a_variant_is_a_name_and_settings():
    wide, plain = make_variants(INTEGER, texts=[
        "wide:net.channels=48,evaluation.opponents=['random','greedy'],training.batch_size=64",
        "plain:",
    ])
    assert (wide.name, wide.config.net.channels) == ("wide", 48)
    assert wide.config.evaluation.opponents == ("random", "greedy")
    assert wide.config.training.batch_size == 64
    assert plain.config == INTEGER


def test_penalties_set_the_weight_of_the_spike_rate_which_the_baseline_does_not_have():
    low, high = make_variants(INTEGER, penalties=(0.0, 0.25))
    assert low.config == INTEGER
    assert high.config.training.spike_rate_weight == 0.25
    spiking, baseline = make_variants(high.config, pair=True)
    assert spiking.config.training.spike_rate_weight == 0.25
    assert baseline.config.training == INTEGER.training


@pytest.mark.parametrize("text", ["net.ticks=2", ":net.ticks=2", "../up:net.ticks=2", "a b:"])
def test_a_malformed_variant_is_refused(text):
    with pytest.raises(UsageError, match="NAME:setting=value"):
        make_variants(INTEGER, texts=[text])


def test_an_unknown_setting_and_two_variants_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="sparkle"):
        make_variants(INTEGER, texts=["a:net.sparkle=2"])
    with pytest.raises(UsageError, match="relu"):
        make_variants(INTEGER, relu=True, texts=["relu:net.ticks=1"])


def test_what_differs_in_play_alone_trains_the_same_network():
    one, other, wider = make_variants(INTEGER, texts=[
        "a:net.precision=int8", "b:net.precision=bf16", "c:net.channels=8",
    ])
    assert one.training_config == other.training_config
    assert one.training_config != wider.training_config


@dataclass(frozen=True)
class Shard:
    num_positions: int


SHARDS = [Shard(100), Shard(200), Shard(300), Shard(400)]


@pytest.mark.parametrize(("samples", "taken", "times"), [
    (1, 1, 1), (699, 1, 1), (700, 2, 1), (999, 3, 1), (1000, 4, 1), (1999, 4, 1), (3500, 4, 3),
])
def test_a_budget_takes_the_newest_games_or_all_of_them_often(samples, taken, times):
    assert _affordable(SHARDS, samples) == (SHARDS[-taken:], times)


def test_a_larger_budget_never_trains_less():
    trained = [
        times * sum(shard.num_positions for shard in shards)
        for shards, times in (_affordable(SHARDS, samples) for samples in range(1, 5000, 7))
    ]
    assert all(before <= after for before, after in pairwise(trained))
