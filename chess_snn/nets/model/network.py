"""The network: bitplanes in, policy logits, value logits and the plies left out.

The layers put together. Read ``Network.forward``: it is the whole path from a position to a policy
and a value. File 4 of 16 of the spine in docs/architecture.md.

A membrane-shortcut spiking residual network (arXiv 2112.08954), or with ``activation = "relu"`` its
ReLU baseline. The input does not change over the ticks, so the stem is computed once.

Dimensions: T ticks, B batch, P planes, C channels, H and W board, A actions, L columns for legal
actions, V outputs of the value head.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from chess_snn.errors import ConfigError
from chess_snn.games.base import GameSpec
from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.growth import grown_weights
from chess_snn.nets.model.layers import (
    READOUT_GAIN,
    Block,
    ConvNorm,
    Neurons,
    PolicyHead,
    ValueHead,
    fire_chain,
    initialise,
)
from chess_snn.nets.model.values import first_value_bias


@dataclass(frozen=True, slots=True)
class NetworkOutput:
    """A network's answer for B positions, from the side to move's view."""

    policy_logits_BA: Tensor
    """float32[B, A], legal or not."""
    value_logits_BV: Tensor
    """float32[B, V]: what :func:`chess_snn.nets.model.values.read_value` reads the value from."""
    plies_left_B: Tensor
    """float32[B]: log(1 + plies to the end of the game). It is learnt for what it teaches the
    trunk; networks that play leave it out."""


@dataclass(frozen=True, slots=True)
class LegalOutput:
    """The same, of listed actions alone: what training asks for."""

    legal_logits_BL: Tensor
    """float32[B, L]; of the columns behind a list, -inf or anything else, without gradient."""
    value_logits_BV: Tensor
    """Same as in :class:`NetworkOutput`."""
    plies_left_B: Tensor
    """Same as in :class:`NetworkOutput`."""


class Network(nn.Module):
    """A network for one game. No part of it keeps state between calls."""

    def __init__(self, spec: GameSpec, config: NetConfig) -> None:
        super().__init__()
        self.spec, self.config = spec, config
        self.stem = ConvNorm(config.num_planes(spec), config.channels, kernel_size=3)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.neurons = Neurons(config)
        self.policy = PolicyHead(spec, config)
        self.value = ValueHead(spec, config)

    def forward(self, planes_BPHW: Tensor) -> NetworkOutput:
        """Evaluate ``planes_BPHW``, floating point in {0, 1}; more than it sees are left out."""
        fired_TBCHW = self._trunk(planes_BPHW)
        return NetworkOutput(self.policy(fired_TBCHW), *self.value(fired_TBCHW))

    def legal_output(
        self, planes_BPHW: Tensor, legal_actions_BL: Tensor, num_legal_B: Tensor
    ) -> LegalOutput:
        """Evaluate ``planes_BPHW`` for the listed actions, integers; differentiable too."""
        fired_TBCHW = self._trunk(planes_BPHW)
        legal_logits_BL = self.policy.readouts.of_legal(
            self.policy.rates(fired_TBCHW), legal_actions_BL, num_legal_B
        )
        return LegalOutput(legal_logits_BL, *self.value(fired_TBCHW))

    def _trunk(self, planes_BPHW: Tensor) -> Tensor:
        """The spikes of the last neurons."""
        blocks = [block for block in self.blocks if isinstance(block, Block)]
        followers = [*(block.neurons1 for block in blocks), self.neurons]
        seen_BPHW = planes_BPHW[:, : self.num_planes]
        layers = [(self.stem, followers[0])]
        for block, following in zip(blocks, followers[1:], strict=True):
            layers += [(block.conv1, block.neurons2), (block.conv2, following)]
        fired = fire_chain(layers, seen_BPHW.unsqueeze(0))
        if fired is not None:
            return fired
        u_TBCHW, fired_TBCHW = self.stem.carry_and_fire(
            followers[0], seen_BPHW.unsqueeze(0), ticks=self.config.ticks
        )
        for block, following in zip(blocks, followers[1:], strict=True):
            u_TBCHW, fired_TBCHW = block(u_TBCHW, fired_TBCHW, following)
        return fired_TBCHW

    def with_ticks(self, ticks: int) -> "Network":
        """A network for play with the same weights that runs for another number of ticks.

        Raises:
            ConfigError: networks with these neurons have one tick, or there are no such many.
        """
        return self.with_config(replace(self.config, ticks=ticks)).eval()

    def with_config(self, config: NetConfig, seed: int = 0) -> "Network":
        """The same weights under ``config``, which differs in nothing that has weights.

        But it may see the rule planes, or read moves from where they go to: these have weight 0
        then. And it may have more channels and blocks (:mod:`chess_snn.nets.model.growth`), to
        which ``seed`` belongs. The answers are the same.

        Raises:
            ConfigError: it has fewer channels or blocks.
        """
        ours, theirs = self.config, config
        if theirs.channels < ours.channels or theirs.blocks < ours.blocks:
            raise ConfigError(
                f"a network of the size {ours.size} cannot become one of the size {theirs.size}: "
                "none of its blocks and channels can be left out"
            )
        grows = (ours.channels, ours.blocks) != (theirs.channels, theirs.blocks)
        other = build_network(self.spec, config, seed) if grows else Network(self.spec, config)
        weights = self.state_dict()
        stem_CPKK = weights["stem.conv.weight"]
        missing = other.num_planes - self.num_planes
        weights["stem.conv.weight"] = nn.functional.pad(stem_CPKK, (0, 0, 0, 0, 0, missing))
        target = other.policy.target_readout
        if target is not None and self.policy.target_readout is None:
            weights["policy.target_readout.weight"] = torch.zeros_like(
                self.policy.readout.weight
            )
        if grows:
            channels = ours.channels, theirs.channels
            weights = grown_weights(weights, other.state_dict(), channels, seed)
        other.load_state_dict(weights)
        return other

    @property
    def num_planes(self) -> int:
        """P: how many of the game's planes it sees, from the first on."""
        return self.config.num_planes(self.spec)

    @property
    def num_parameters(self) -> int:
        """Trained numbers."""
        return sum(parameter.numel() for parameter in self.parameters())


def build_network(
    spec: GameSpec, config: NetConfig, seed: int, readout_gain: float = READOUT_GAIN
) -> Network:
    """A new network for ``spec``; ``seed`` alone decides its weights.

    ``readout_gain`` is the initial scale of its policy and values; well above the default, it
    starts with prejudices.

    torch's global random state is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which would reseed the accelerators too.
        torch.default_generator.manual_seed(seed % 2**63)
        network = Network(spec, config)
        initialise(network, readout_gain)
        with torch.no_grad():
            network.value.readout.bias.copy_(first_value_bias(spec))
    return network
