"""The parts a network is built of. A part keeps no state between calls.

The convolutions, blocks and heads around the neurons. Read ``Block`` for the shortcut that carries
currents past the spikes, and the two heads for how spikes become numbers. File 3 of 16 of the spine
in docs/architecture.md.

Dimensions: T ticks, B batch, C channels, H and W board, F features, A actions, V outputs of the
value head, X any of them. The heads take what the last neurons of the trunk fired.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from chess_snn.games.base import GameSpec
from chess_snn.nets.cpu.chain_cpu import can_run, run_chain
from chess_snn.nets.cpu.conv_cpu import can_convolve, convolve
from chess_snn.nets.cpu.neuron_cpu import lif_cpu
from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.integer_neuron import integer_spikes
from chess_snn.nets.model.neuron import has_triton, lif_on_gpu
from chess_snn.nets.model.readouts import PolicyReadout, read_float32, squares_first
from chess_snn.nets.model.values import num_value_outputs

BRANCH_GAIN = 0.2
"""Initial scale of a block's second normalisation: a deep network starts near the identity."""
READOUT_GAIN = 0.5
"""Initial standard deviation of a readout's weights, times the square root of its fan-in: small,
so that the first policy is near uniform over legal moves and the first value near even."""
TYPICAL_LOG_PLIES = 4.0
"""Log(1 + plies left) of some 50 plies, which is added to what the readout says: no step is wasted
on learning the scale."""
INPUTS_MULTIPLE = {"cpu": 1, "cuda": 8}
"""Multiple of the first convolution's channels, by device: cuDNN is fast with these alone."""
MOST_NORM_TICKS = 4
"""Ticks of neurons that fire in the pass that normalises: it holds the charges of all in registers.
"""


def mean_over_ticks(fired_TBX: Tensor) -> Tensor:
    """Spike rates float32[B, X]."""
    return fired_TBX.mean(0, dtype=torch.float32)


class Neurons(nn.Module):
    """A layer of neurons: currents [T, B, X] to spikes [T, B, X], or ReLU in the baseline."""

    def __init__(self, config: NetConfig) -> None:
        super().__init__()
        self.config = config

    def forward(self, current_TBX: Tensor, has_fired: bool = False) -> Tensor:
        """Spikes in {0, 1}, integer neurons in {0, ..., levels}, or values >= 0 in the baseline.

        Integer neurons have one tick, and fire current / threshold times in it, rounded. The state
        starts at zero in every call. With ``has_fired`` they are given, from a fused
        pass, and all that is done is to show them to those that listen to this layer.
        """
        config = self.config
        if has_fired:
            return current_TBX
        if config.activation == "relu":
            return relu(current_TBX)
        if config.activation == "ilif":
            return integer_spikes(current_TBX, config.threshold, config.levels)
        # One definition, three implementations: the device decides.
        neuron = lif_cpu if current_TBX.device.type == "cpu" else lif_on_gpu()
        return neuron(current_TBX, config.decay, config.threshold, config.surrogate_alpha)


class Convolution(nn.Conv2d):
    """A convolution without bias that keeps H and W, in training by our own kernels if they fit."""

    def __init__(self, channels_in: int, channels_out: int, kernel_size: int) -> None:
        super().__init__(
            channels_in, channels_out, kernel_size, padding=kernel_size // 2, bias=False
        )

    def forward(self, input: Tensor) -> Tensor:
        """[B, O, H, W] of [B, I, H, W]."""
        if self.training and can_convolve(self, input):
            return convolve(self, input)
        return super().forward(input)


class ConvNorm(nn.Module):
    """Convolution and batch normalisation, with the ticks folded into the batch for both."""

    def __init__(self, channels_in: int, channels_out: int, kernel_size: int) -> None:
        super().__init__()
        self.conv = Convolution(channels_in, channels_out, kernel_size)
        self.norm = nn.BatchNorm2d(channels_out)

    def forward(self, x_TBCHW: Tensor) -> Tensor:
        """Currents [T, B, C, H, W]."""
        return each_tick(lambda x_XCHW: self.norm(self.conv(x_XCHW)), x_TBCHW)

    def fire(self, neurons: nn.Module, x_TBCHW: Tensor) -> Tensor:
        """The spikes of ``neurons`` at these currents, [T, B, C, H, W]."""
        fired = fire_chain([(self, neurons)], x_TBCHW)
        if fired is not None:
            return fired
        config = self._config_if_fused(neurons)
        if config is None:
            return neurons(self(x_TBCHW))  # type: ignore[no-any-return]
        from chess_snn.nets.gpu import norm_neuron_triton  # noqa: PLC0415 - as in lif_on_gpu

        fired_TBCHW = norm_neuron_triton.fire(each_tick(self.conv, x_TBCHW), self.norm, config)
        return neurons(fired_TBCHW, has_fired=True)  # type: ignore[no-any-return]

    def carry_and_fire(
        self, neurons: nn.Module, x_TBCHW: Tensor, shortcut_TBCHW: Tensor | None = None,
        ticks: int = -1,
    ) -> tuple[Tensor, Tensor]:
        """These currents, or their sum with a shortcut; and what ``neurons`` fire at them.

        Without a shortcut, currents of one tick are given ``ticks``, unless a fused pass needs but
        one.
        """
        config = self._config_if_fused(neurons)
        if config is None:
            current_TBCHW = self(x_TBCHW)
            if shortcut_TBCHW is None:
                current_TBCHW = current_TBCHW.expand(ticks, -1, -1, -1, -1)
            else:
                current_TBCHW = shortcut_TBCHW + current_TBCHW
            return current_TBCHW, neurons(current_TBCHW)
        from chess_snn.nets.gpu import norm_neuron_triton  # noqa: PLC0415 - as in lif_on_gpu

        current_TBCHW, fired_TBCHW = norm_neuron_triton.carry_and_fire(
            each_tick(self.conv, x_TBCHW), self.norm, config, shortcut_TBCHW
        )
        return current_TBCHW, neurons(fired_TBCHW, has_fired=True)

    def _config_if_fused(self, neurons: nn.Module) -> NetConfig | None:
        """The config of ``neurons`` that fire in the pass that normalises: in training on a GPU."""
        if not (self.norm.training and isinstance(neurons, Neurons) and neurons.config.is_spiking):
            return None
        is_fused = is_fused_on(self.conv.weight.device) and neurons.config.ticks <= MOST_NORM_TICKS
        return neurons.config if is_fused else None


def fire_chain(
    layers: Sequence[tuple[ConvNorm, nn.Module]], x_TBCHW: Tensor
) -> Tensor | None:
    """The spikes of the last of ``layers``, where one call can run all of them in training.

    A block is two of them, as in :mod:`chess_snn.nets.cpu.chain_cpu`.
    """
    neurons = layers[0][1]
    if not isinstance(neurons, Neurons):
        return None
    parts = [(layer.conv, layer.norm) for layer, _ in layers]
    if not can_run(parts, neurons.config, x_TBCHW[0]):
        return None
    fired_BCHW = run_chain(x_TBCHW[0], parts, neurons.config)
    shown: list[Tensor] = [
        neurons(fired.unsqueeze(0), has_fired=True)
        for (_, neurons), fired in zip(layers, fired_BCHW, strict=True)
    ]
    return shown[-1]


def is_fused_on(device: torch.device) -> bool:
    """Whether there are fused passes for training there."""
    return device.type == "cuda" and has_triton()


def add_empty_inputs(conv: nn.Conv2d, multiple: int) -> None:
    """Give ``conv`` input channels of weight 0 until their number is a multiple."""
    missing = -conv.in_channels % multiple
    wider = nn.functional.pad(conv.weight.detach(), (0, 0, 0, 0, 0, missing))
    conv.weight = nn.Parameter(wider, requires_grad=conv.weight.requires_grad)
    conv.in_channels += missing


class Block(nn.Module):
    """``u + BN(conv(neurons(BN(conv(neurons(u))))))``: the shortcut carries membrane input.

    Membrane shortcut of arXiv 2112.08954, section 3.3: no spike is added to a spike, so the
    network stays binary between neurons and convolution at any depth.
    """

    def __init__(self, config: NetConfig) -> None:
        super().__init__()
        self.neurons1, self.neurons2 = Neurons(config), Neurons(config)
        self.conv1 = ConvNorm(config.channels, config.channels, kernel_size=3)
        self.conv2 = ConvNorm(config.channels, config.channels, kernel_size=3)

    def forward(
        self, u_TBCHW: Tensor, fired_TBCHW: Tensor, following: nn.Module
    ) -> tuple[Tensor, Tensor]:
        """The next ``u``, and what the neurons that ``following`` names fire at it.

        ``fired_TBCHW`` is what this block's first neurons fired at ``u_TBCHW``: they belong to the
        pass that made it.
        """
        inner_TBCHW = self.conv1.fire(self.neurons2, fired_TBCHW)
        return self.conv2.carry_and_fire(following, inner_TBCHW, u_TBCHW)


class PolicyHead(nn.Module):
    """conv3x3, neurons, mean over ticks, and readouts (:mod:`chess_snn.nets.model.readouts`).

    In chess the logit of an action is a weighted sum of the rates of the square that it leaves and,
    with ``target_readout``, of the square that it goes to. The weights belong to the action's step
    and are the same for all squares. In 2048 the rates of the whole board have a weight for each
    action.
    """

    def __init__(self, spec: GameSpec, config: NetConfig) -> None:
        super().__init__()
        self.conv = ConvNorm(config.channels, config.channels, kernel_size=3)
        self.neurons = Neurons(config)
        self.spec = spec
        planes = spec.policy_planes
        self.readout = (
            nn.Linear(config.channels * math.prod(spec.board_shape), spec.num_actions)
            if planes is None
            else nn.Linear(config.channels, planes)
        )
        self.target_readout = (
            nn.Linear(config.channels, planes, bias=False)
            if planes is not None and config.target_readout
            else None
        )

    def forward(self, fired_TBCHW: Tensor) -> Tensor:
        """Logits float32[B, A]."""
        return self.readouts.of_all(self.rates(fired_TBCHW))

    @property
    def readouts(self) -> PolicyReadout:
        """The module that reads the rates."""
        return PolicyReadout(self.spec, self.readout, self.target_readout)

    def rates(self, fired_TBCHW: Tensor) -> Tensor:
        """Spike rates float32[B, C, H, W], which the readout sees."""
        return mean_over_ticks(self.conv.fire(self.neurons, fired_TBCHW))


class ValueHead(nn.Module):
    """conv1x1, neurons, linear, neurons, mean over ticks, and two linear readouts.

    The V outputs are logits of win, draw and loss; in 2048 of bins, whose mean is the return.
    """

    def __init__(self, spec: GameSpec, config: NetConfig) -> None:
        super().__init__()
        self.conv = ConvNorm(config.channels, config.value_channels, kernel_size=1)
        self.neurons1, self.neurons2 = Neurons(config), Neurons(config)
        squares = math.prod(spec.board_shape)
        self.hidden = nn.Linear(config.value_channels * squares, config.value_hidden)
        self.readout = nn.Linear(config.value_hidden, num_value_outputs(spec))
        self.plies_left_readout = nn.Linear(config.value_hidden, 1)

    def forward(self, fired_TBCHW: Tensor) -> tuple[Tensor, Tensor]:
        """Predict the game's end, and how far away it is.

        Logits float32[B, V], and log(1 + plies left) float32[B].
        """
        seen_TBF = squares_first(self.conv.fire(self.neurons1, fired_TBCHW))
        rate_BF = mean_over_ticks(self.neurons2(self.hidden(seen_TBF)))
        plies_left_B1 = read_float32(self.plies_left_readout, rate_BF)
        return read_float32(self.readout, rate_BF), TYPICAL_LOG_PLIES + plies_left_B1.squeeze(1)


def each_tick(layer: Callable[[Tensor], Tensor], x_TBX: Tensor) -> Tensor:
    """``layer`` of all ticks in one call, with the ticks folded into the batch."""
    y_XX = layer(x_TBX.flatten(0, 1))
    return y_XX.view(x_TBX.shape[:2] + y_XX.shape[1:])


def initialise(network: nn.Module, readout_gain: float) -> None:
    """Kaiming for everything but readouts and branches, of which the gain is ``BRANCH_GAIN``.

    All biases are 0, and so is the readout of targets: the first policy is as without it.

    Kaiming et al., arXiv 1502.01852, section 2.2.
    """
    for name, module in network.named_modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            if name == "policy.target_readout":
                nn.init.zeros_(module.weight)
            elif name.endswith("readout"):
                fan_in = module.weight.shape[1]
                nn.init.normal_(module.weight, std=readout_gain / math.sqrt(fan_in))
            else:
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, Block):
            nn.init.constant_(module.conv2.norm.weight, BRANCH_GAIN)
