"""The shape of a network, as settings."""

from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal

from chess_snn.config import check_choice, check_range
from chess_snn.errors import ConfigError

Activation = Literal["lif", "relu"]


@dataclass(frozen=True, slots=True)
class NetConfig:
    """A residual network of spiking neurons, or its ordinary twin."""

    blocks: int = 3
    """Residual blocks of two 3x3 convolutions each."""
    channels: int = 32
    """Channels of every 3x3 convolution."""
    ticks: int = 2
    """T: spiking time of one evaluation; 1 with `relu`."""
    activation: Activation = "lif"
    """`lif` spikes; `relu` is the ordinary twin, in which a value takes the place of T spikes."""
    value_channels: int = 8
    """Channels the value head looks at."""
    value_hidden: int = 64
    """Hidden neurons of the value head."""
    decay: float = 0.5
    """Share of the membrane potential that is left after one tick."""
    threshold: float = 0.5
    """Membrane potential from which a neuron spikes."""
    surrogate_alpha: float = 2.0
    """Sharpness of the surrogate derivative, which training alone uses."""

    def __post_init__(self) -> None:
        check_range("net.blocks", self.blocks, ge=1, le=100)
        check_range("net.channels", self.channels, ge=1, le=4096)
        check_range("net.ticks", self.ticks, ge=1, le=64)
        check_choice("net.activation", self.activation, ("lif", "relu"))
        check_range("net.value_channels", self.value_channels, ge=1, le=4096)
        check_range("net.value_hidden", self.value_hidden, ge=1, le=65536)
        check_range("net.decay", self.decay, ge=0, le=1)
        check_range("net.threshold", self.threshold, gt=0, le=100)
        check_range("net.surrogate_alpha", self.surrogate_alpha, gt=0, le=100)
        if self.activation == "relu" and self.ticks != 1:
            raise ConfigError(
                f'net.ticks must be 1 with net.activation = "relu", got {self.ticks}; '
                "set net.ticks = 1"
            )

    @property
    def size(self) -> str:
        """The preset with as many blocks and channels; without one such as ``"2x24"``."""
        for name, preset in SIZES.items():
            if (preset.blocks, preset.channels) == (self.blocks, self.channels):
                return name
        return f"{self.blocks}x{self.channels}"

    @property
    def is_spiking(self) -> bool:
        """Whether the network has neurons that spike."""
        return self.activation == "lif"

    def twin(self) -> "NetConfig":
        """The ordinary network of the same shape: the same parameters, ReLU, one tick."""
        return replace(self, activation="relu", ticks=1)


SIZES: Final = {
    "tiny": NetConfig(blocks=3, channels=32, ticks=2),
    "small": NetConfig(blocks=6, channels=64, ticks=4),
    "base": NetConfig(blocks=10, channels=128, ticks=4),
    "large": NetConfig(blocks=20, channels=256, ticks=4),
}
"""Presets by name; a network remembers its numbers, not the name."""


def net_config(size: str, **overrides: Any) -> NetConfig:
    """The preset ``size`` with some fields changed.

    Raises:
        ConfigError: an unknown size or field, or a value out of range.
    """
    check_choice("net.size", size, SIZES)
    known = [field.name for field in fields(NetConfig)]
    for name in overrides:
        if name not in known:
            raise ConfigError(f"unknown setting net.{name}; known: {', '.join(known)}")
    return replace(SIZES[size], **overrides)
