"""The shape of a network, as settings."""

import re
from dataclasses import replace
from typing import Any, Final, Literal

from pydantic import Field

from chess_snn.errors import ConfigError
from chess_snn.games.base import GameSpec
from chess_snn.settings import settings_class

Activation = Literal["lif", "ilif", "relu"]
Precision = Literal["fp32", "bf16", "int8"]
"""Numbers of a network in play."""


MOST_TICKS: Final = 64
"""Most ticks of one evaluation."""


@settings_class("net")
class NetConfig:
    """A residual network of spiking neurons, or its ReLU baseline."""

    blocks: int = Field(default=3, ge=1, le=100)
    """Residual blocks of two 3x3 convolutions each."""
    channels: int = Field(default=32, ge=1, le=4096)
    """Channels of every 3x3 convolution."""
    rule_planes: bool = False
    """Whether it also sees the planes that follow from the rules; chess has them."""
    target_readout: bool = False
    """Whether a move's logit is also read from the square that it goes to; in chess."""
    ticks: int = Field(default=2, ge=1, le=MOST_TICKS)
    """T: spiking time of one evaluation; 1 with `ilif` and `relu`."""
    activation: Activation = "lif"
    """`lif` spikes once a tick; `ilif` up to `levels` times in its one tick; `relu` is the ordinary
    baseline, in which a value takes the place of spikes."""
    levels: int = Field(default=4, ge=1, le=127)
    """D: most spikes of an `ilif` neuron."""
    value_channels: int = Field(default=8, ge=1, le=4096)
    """Channels the value head looks at."""
    value_hidden: int = Field(default=64, ge=1, le=65536)
    """Hidden neurons of the value head."""
    decay: float = Field(default=0.5, ge=0, le=1)
    """Share of the membrane potential that is left after one tick."""
    threshold: float = Field(default=0.5, gt=0, le=100)
    """Membrane potential from which a neuron spikes."""
    surrogate_alpha: float = Field(default=2.0, gt=0, le=100)
    """Sharpness of the surrogate derivative, which training alone uses."""

    def __post_init__(self) -> None:
        if self.activation != "lif" and self.ticks != 1:
            raise ConfigError(
                f'net.ticks must be 1 with net.activation = "{self.activation}", got {self.ticks}; '
                "set net.ticks = 1"
            )

    @property
    def size(self) -> str:
        """The preset with as many blocks and channels; without one such as ``"2x24"``."""
        for name, preset in SIZES.items():
            if (preset.blocks, preset.channels) == (self.blocks, self.channels):
                return name
        return f"{self.blocks}x{self.channels}"

    def num_planes(self, spec: GameSpec) -> int:
        """P: how many of the planes of a game, from the first on, the network sees."""
        return spec.num_planes + (spec.num_rule_planes if self.rule_planes else 0)

    @property
    def is_spiking(self) -> bool:
        """Whether the network has neurons that spike."""
        return self.activation != "relu"

    @property
    def most_spikes(self) -> int:
        """Most spikes of one neuron in one tick."""
        return self.levels if self.activation == "ilif" else 1

    @property
    def virtual_ticks(self) -> int:
        """Ticks in which binary neurons fire the same spikes; 1 in the baseline."""
        return self.ticks * self.most_spikes

    def with_activation(self, activation: Activation) -> "NetConfig":
        """The same parameters with other neurons; those of one tick get one."""
        ticks = self.ticks if activation == "lif" else 1
        return replace(self, activation=activation, ticks=ticks)

    def baseline(self) -> "NetConfig":
        """The ordinary network of the same shape: the same parameters, ReLU, one tick."""
        return self.with_activation("relu")


SIZES: Final = {
    "tiny": NetConfig(blocks=3, channels=32, ticks=2),
    "small": NetConfig(blocks=6, channels=64, ticks=4),
    "base": NetConfig(blocks=10, channels=128, ticks=4),
    "large": NetConfig(blocks=20, channels=256, ticks=4),
}
"""Presets by name; a network remembers its numbers, not the name."""
_SHAPE: Final = re.compile(r"(\d{1,4})x(\d{1,4})", re.ASCII)


def net_config(size: str, **overrides: Any) -> NetConfig:
    """The preset ``size``, or a network of such a size as ``"2x24"``, with some fields changed.

    Raises:
        ConfigError: an unknown size or field, or a value out of range.
    """
    if shape := _SHAPE.fullmatch(size):
        return NetConfig(**{"blocks": int(shape[1]), "channels": int(shape[2])} | overrides)
    if size not in SIZES:
        raise ConfigError(
            f"net.size must be one of {', '.join(SIZES)}, or blocks and channels such as 8x96, "
            f"got {size!r}"
        )
    return replace(SIZES[size], **overrides)
