"""Networks and value heads: their settings, and what values mean in closed form."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.errors import ConfigError
from chess_snn.games import ValueKind, get_game
from chess_snn.nets import (
    SIZES,
    NetConfig,
    build_network,
    count_operations,
    make_evaluator,
    net_config,
    read_value,
    value_target,
)
from chess_snn.nets.model.values import NUM_BINS, return_bins

WDL = get_game("chess").spec
RETURN = replace(WDL, value_kind=ValueKind.RETURN, value_limit=1024.0)


def test_bins_rise_from_0_to_the_limit_as_squares():
    bins = return_bins(RETURN).double().numpy()
    np.testing.assert_allclose(bins, 1024 * np.linspace(0, 1, NUM_BINS) ** 2, rtol=1e-6)
    assert (bins[0], bins[-1]) == (0, 1024)
    assert np.all(np.diff(bins, 2) > 0), "steps must grow"


@given(st.lists(st.floats(0, 1024, width=32), min_size=1, max_size=20))
def test_a_return_is_taught_as_two_bins_that_keep_its_mean(values):
    target = value_target(RETURN, torch.tensor(values)).double().numpy()
    np.testing.assert_allclose(target.sum(1), 1, atol=1e-6)
    assert (target >= 0).all()
    means = target @ return_bins(RETURN).double().numpy()
    np.testing.assert_allclose(means, values, rtol=1e-6, atol=1e-5)
    for row in target:
        hot = np.flatnonzero(row)
        assert len(hot) == 1 or np.array_equal(hot, [hot[0], hot[0] + 1])


def test_a_bin_itself_and_what_is_outside():
    bins = return_bins(RETURN)
    np.testing.assert_allclose(value_target(RETURN, bins), np.eye(NUM_BINS), atol=1e-4)
    outside = value_target(RETURN, torch.tensor([-3.0, 5000.0]))
    assert (outside[0, 0], outside[1, -1]) == (1, 1)


@given(st.floats(0, 1024, width=32))
def test_what_is_taught_is_what_is_read(value):
    target = value_target(RETURN, torch.tensor([value]))
    wdl, read = read_value(RETURN, target.clamp_min(1e-30).log())
    assert wdl.shape == (1, 0)
    assert read.item() == pytest.approx(value, rel=1e-5, abs=1e-4)


def test_win_draw_and_loss():
    wdl, value = read_value(WDL, torch.tensor([[math.log(2), 0, math.log(5)]]))
    np.testing.assert_allclose(wdl, [[2 / 8, 1 / 8, 5 / 8]], rtol=1e-6)
    assert value.item() == pytest.approx(-3 / 8)


@pytest.mark.parametrize("seed", range(3))
def test_a_new_network_promises_about_a_thousandth_of_the_limit(seed):
    network = build_network(RETURN, net_config("tiny"), seed).eval()
    planes = torch.rand(64, RETURN.num_planes, 8, 8).round()
    with torch.no_grad():
        _, values = read_value(RETURN, network(planes).value_logits_BV)
    assert values.min() > 0
    assert values.max() < 5e-3 * RETURN.value_limit


# Settings of networks.


def test_sizes_are_those_of_the_documentation():
    shapes = {name: (c.blocks, c.channels, c.ticks) for name, c in SIZES.items()}
    assert shapes == {
        "tiny": (3, 32, 2), "small": (6, 64, 4), "base": (10, 128, 4), "large": (20, 256, 4),
    }


def test_the_twin_differs_in_activation_and_ticks_alone():
    assert net_config("small").baseline() == NetConfig(
        blocks=6, channels=64, ticks=1, activation="relu"
    )


def test_a_size_is_named_by_blocks_and_channels():
    assert {config.size for config in SIZES.values()} == set(SIZES)
    assert net_config("small", ticks=1, decay=0.9).baseline().size == "small"
    assert NetConfig(blocks=2, channels=24).size == "2x24"


@pytest.mark.parametrize(
    ("size", "overrides", "named"),
    [("huge", {}, "net.size"), ("tiny", {"channel": 3}, "net.channel"),
     ("tiny", {"activation": "relu"}, "net.ticks"), ("tiny", {"activation": "ilif"}, "net.ticks")],
)
def test_bad_settings_are_named(size, overrides, named):
    with pytest.raises(ConfigError, match=named):
        net_config(size, **overrides)


# Networks of a game on 4x4 squares with a dense policy and a return, in every precision.


SPEC = get_game("2048").spec
TINY = net_config("tiny")


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_low_precision_is_near_the_network_that_was_trained(boards, precision):
    network = build_network(SPEC, TINY, 5).eval()
    with torch.inference_mode():
        output = network(boards.tensor())
        _, expected = read_value(SPEC, output.value_logits_BV)
    with make_evaluator(network, precision=precision) as evaluator:
        values = evaluator.evaluate(
            boards.planes, boards.legal_actions, boards.num_legal
        ).value_stm
    assert np.mean(np.abs(values - expected.numpy())) < 0.1 * expected.mean()


def test_the_operations_of_its_heads():
    passes = {each.name: each for each in count_operations(SPEC, TINY).passes}
    assert passes["policy.readout"].macs == 16 * 32 * 4
    assert passes["value.readout"].macs == 64 * 128
