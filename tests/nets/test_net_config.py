"""Settings of networks."""

import pytest

from chess_snn.errors import ConfigError
from chess_snn.nets import SIZES, NetConfig, net_config


def test_sizes_are_those_of_the_documentation():
    shapes = {name: (c.blocks, c.channels, c.ticks) for name, c in SIZES.items()}
    assert shapes == {
        "tiny": (3, 32, 2), "small": (6, 64, 4), "base": (10, 128, 4), "large": (20, 256, 4),
    }


def test_overrides_change_one_field():
    assert net_config("small", ticks=2) == NetConfig(blocks=6, channels=64, ticks=2)


def test_the_twin_differs_in_activation_and_ticks_alone():
    assert net_config("small").baseline() == NetConfig(
        blocks=6, channels=64, ticks=1, activation="relu"
    )


def test_a_size_is_named_by_blocks_and_channels():
    assert {config.size for config in SIZES.values()} == set(SIZES)
    assert net_config("small", ticks=1, decay=0.9).baseline().size == "small"
    assert NetConfig(blocks=2, channels=24).size == "2x24"


@pytest.mark.parametrize(
    ("size", "overrides", "message"),
    [
        ("huge", {}, "net.size must be one of tiny, small, base, large, got 'huge'"),
        ("tiny", {"channel": 3}, "unknown setting net.channel; did you mean net.channels?"),
        ("tiny", {"activation": "relu"}, 'net.ticks must be 1 with net.activation = "relu", got 2'),
    ],
)
def test_bad_settings_are_named(size, overrides, message):
    with pytest.raises(ConfigError) as error:
        net_config(size, **overrides)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
