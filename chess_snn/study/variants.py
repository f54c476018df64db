"""The networks that a study compares: one configuration, with some settings changed in each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from chess_snn.campaign.configuration.loading import changed_config
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.errors import UsageError
from chess_snn.nets import MOST_TICKS
from chess_snn.settings import check_range

PAIR: Final = ("spiking", "relu")
"""Names of a matched pair."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_NEXT_SETTING: Final = re.compile(r",(?=\s*[a-z_]+\.[a-z_]+\s*=)")
"""The comma between two settings; one within a value is followed by none."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A network of the study."""

    name: str
    overrides: tuple[str, ...]
    """``net.ticks=4``: what differs from the configuration of the study."""
    config: CampaignConfig

    def sets(self, setting: str) -> bool:
        """Whether the setting of this dotted name is among the overrides."""
        return any(text.partition("=")[0].strip() == setting for text in self.overrides)

    @property
    def training_config(self) -> CampaignConfig:
        """Settings that decide the weights: variants that differ in play alone share a network."""
        return replace(self.config, net=replace(self.config.net, precision="fp32"))


def make_variants(
    config: CampaignConfig, *, ticks: Sequence[int] = (), levels: Sequence[int] = (),
    penalties: Sequence[float] = (), relu: bool = False, pair: bool = False,
    texts: Sequence[str] = (),
) -> tuple[Variant, ...]:
    """The variants of ``config`` that the options ask for, in this order.

    Args:
        config: of the study.
        ticks: of leaky neurons.
        levels: of integer neurons.
        penalties: weights of the spike rate in the loss.
        relu: whether there is the ReLU baseline.
        pair: whether there is ``config`` itself, a spiking network, and its ReLU baseline.
        texts: ``NAME:setting=value,setting=value``; ``NAME:`` changes nothing.

    Raises:
        UsageError: a name is malformed or used twice, or the network of a pair does not spike.
        ConfigError: a setting is unknown, or a value is out of range.
    """
    for number in ticks:
        check_range("--ticks", number, ge=1, le=MOST_TICKS)
    for number in levels:
        check_range("--levels", number, ge=1, le=64)
    baseline = ["net.activation=relu", "net.ticks=0"]
    if config.net.precision == "int8":
        baseline.append("net.precision=bf16")  # int8 counts spikes
    if config.training.spike_rate_weight:
        baseline.append("training.spike_rate_weight=0.0")
    wanted: list[tuple[str, list[str]]] = []
    if pair:
        if not config.net.network().is_spiking:
            raise UsageError(
                'a pair has a spiking network, and net.activation = "relu"; set it to lif or ilif'
            )
        wanted += [(PAIR[0], []), (PAIR[1], baseline)]
    wanted += [(f"ticks-{n}", ["net.activation=lif", f"net.ticks={n}"]) for n in ticks]
    wanted += [
        (f"levels-{n}", ["net.activation=ilif", "net.ticks=0", f"net.levels={n}"]) for n in levels
    ]
    wanted += [(f"penalty-{p:g}", [f"training.spike_rate_weight={p:g}"]) for p in penalties]
    if relu and not pair:
        wanted.append((PAIR[1], baseline))
    wanted += [_parse(text) for text in texts]
    names = [name for name, _ in wanted]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"two variants are called {min(twice)}; give each a name of its own")
    return tuple(
        Variant(name, tuple(overrides), changed_config(config, overrides))
        for name, overrides in wanted
    )


def _parse(text: str) -> tuple[str, list[str]]:
    name, colon, settings = text.partition(":")
    if not colon or not _NAME.fullmatch(name):
        raise UsageError(
            f"--variant takes NAME:setting=value,setting=value, got {text!r}; for example "
            "fast:net.ticks=1,net.channels=24"
        )
    return name, [part.strip() for part in _NEXT_SETTING.split(settings) if part.strip()]
