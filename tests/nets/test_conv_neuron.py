"""The convolution with its neurons as one kernel, against the reference bit for bit.

Without a GPU it is interpreted.
"""

import math
from dataclasses import dataclass

import pytest
import torch
from torch.nn.functional import conv2d

from chess_snn.nets import NetConfig, build_network, freeze, net_config
from chess_snn.nets.folded_convs import round_weights
from chess_snn.nets.gpu.conv_neuron import MOST_FUSED_TICKS, NUM_WARPS, FusedConv, choose_tiling
from chess_snn.nets.inference_neurons import InferenceNeurons
from chess_snn.nets.model.integer_neuron import count_spikes

triton = pytest.importorskip(
    "triton", reason="triton is not installed: its kernels are not tested"
)

tl = pytest.importorskip("triton.language")
from chess_snn.nets.gpu.conv_neuron_triton_kernels import levels_reached  # noqa: E402

pytestmark = pytest.mark.usefixtures("true_bfloat16")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
GUARD = 1024
"""Numbers before and behind a tensor, which no kernel may read or write."""
POISON = {torch.uint8: 113, torch.bfloat16: torch.nan, torch.float32: torch.nan}


@triton.jit
def count_levels(numbers, counted, THRESHOLD: tl.constexpr, LEVELS: tl.constexpr):
    place = tl.arange(0, 65_536)
    currents = tl.load(numbers + place).to(tl.float32)
    tl.store(counted + place, levels_reached(currents, THRESHOLD, LEVELS))


@dataclass(frozen=True)
class Case:
    """One layer."""

    ticks: int
    channels: int
    outputs: int
    batch: int = 3
    levels: int = 0
    side: int = 3
    board: tuple[int, int] = (8, 8)

    @property
    def config(self):
        activation = {"activation": "ilif", "levels": self.levels} if self.levels else {}
        return NetConfig(ticks=self.ticks, decay=0.6, threshold=0.7, **activation)


CASES = [
    Case(1, 64, 64, batch=5, levels=4, board=(4, 8)),
    Case(MOST_FUSED_TICKS, 32, 32, board=(4, 5)),
    Case(3, 48, 24, board=(4, 4)), Case(2, 5, 7, batch=1), Case(2, 32, 8, side=1, board=(4, 4)),
    Case(2, 17, 32, batch=5, board=(4, 4)), Case(1, 32, 32, batch=7, board=(3, 5), levels=2),
]
MORE_CASES = [
    *(Case(ticks, 32, 32, board=board)
      for ticks in range(1, MOST_FUSED_TICKS + 1) for board in ((4, 5), (8, 8))),
    Case(4, 64, 64), Case(1, 32, 32, levels=127), Case(3, 48, 24), Case(2, 32, 8, side=1),
    Case(2, 128, 128, batch=1), Case(1, 256, 256, batch=1, levels=4),
    Case(1, 64, 64, batch=5, levels=4),
    *(Case(ticks, channels, channels, levels=levels)
      for channels in (32, 64, 128, 256)
      for ticks, levels in ((1, 0), (1, 4), (2, 0), (4, 0), (8, 0))),
]


@pytest.mark.parametrize(("threshold", "levels"), [(0.7, 8), (0.7, 9), (0.5, 127), (1e-3, 127)])
def test_levels_are_those_of_the_definition_for_every_bfloat16(threshold, levels):
    numbers = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    counted = torch.empty(1 << 16, device=DEVICE)
    count_levels[(1,)](numbers.to(DEVICE), counted, THRESHOLD=threshold, LEVELS=levels)
    assert torch.equal(counted.cpu(), count_spikes(numbers, threshold, levels))


@pytest.fixture
def guards(monkeypatch):
    """Poison allocated memory, and put guards on both sides."""
    made = []
    real = torch.Tensor.new_empty

    def poisoned(self, shape, dtype=None, **others):
        dtype = dtype or self.dtype
        if others or dtype not in POISON:  # torch's own
            return real(self, shape, dtype=dtype, **others)
        memory = real(self, (math.prod(shape) + 2 * GUARD,), dtype=dtype).fill_(POISON[dtype])
        made.append(memory)
        return memory[GUARD:-GUARD].view(shape)

    monkeypatch.setattr(torch.Tensor, "new_empty", poisoned)
    return made


def is_poison(memory):
    return memory.isnan() if memory.is_floating_point() else memory == POISON[memory.dtype]


def layer(case):
    """The convolution, and the layer that does its work."""
    generator = torch.Generator().manual_seed(0)
    conv = torch.nn.Conv2d(case.channels, case.outputs, case.side, padding=case.side // 2)
    conv.requires_grad_(False)
    for tensor in (conv.weight, conv.bias):
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.2)
    return conv, FusedConv(conv, case.config).to(DEVICE)


def spikes(case, ticks, seed=1):
    """[T, B, C, H, W], channels-last, between guards."""
    generator = torch.Generator().manual_seed(seed)
    shape = (ticks, case.batch, *case.board, case.channels)
    most = max(case.levels, 1)
    fired = torch.randint(0, most + 1, shape, generator=generator)
    fired *= torch.rand(shape, generator=generator) < 0.3
    return in_memory(fired, torch.uint8)


def shortcut_of(case, ticks):
    shape = (ticks, case.batch, *case.board, case.outputs)
    values = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    return in_memory(values.mul(8).round().div(8), torch.bfloat16)


def in_memory(values, dtype):
    memory = torch.full((values.numel() + 2 * GUARD,), POISON[dtype], dtype=dtype, device=DEVICE)
    inside = memory[GUARD:-GUARD].view(values.shape)
    inside.copy_(values)
    return inside.permute(0, 1, 4, 2, 3)


def currents(conv, x_TBCHW):
    """Fire in bfloat16, from exact sums."""
    weight, scale = round_weights(conv.weight)
    sums = conv2d(x_TBCHW.cpu().flatten(0, 1).double(), weight.double(), padding=conv.padding)
    current = sums.float() * scale.view(-1, 1, 1) + conv.bias.view(-1, 1, 1)
    return current.bfloat16().unflatten(0, x_TBCHW.shape[:2])


def check(case, guards):
    """Every method of the layer gives what the reference gives."""
    conv, ours = layer(case)
    neurons = InferenceNeurons(case.config)

    def equal(found, expected):
        found = found.cpu()
        assert not is_poison(found).any()
        assert torch.equal(found.float(), expected.float())

    x = spikes(case, case.ticks)
    current = currents(conv, x)
    fired = ours.fire(x)
    equal(fired, neurons.fire(current.clone()))
    assert (fired.dtype, fired.stride(2)) == (torch.uint8, 1)
    assert 0 < fired.float().mean() < max(case.levels, 1)
    equal(ours.mean_rate(x), neurons.mean_rate(current.clone()))
    for ticks in {1, case.ticks}:
        shortcut = shortcut_of(case, ticks)
        before = shortcut.cpu().clone()
        total, fired = ours.add_and_fire(shortcut, x)
        total_expected, expected = neurons.add_and_fire(before, current.clone())
        equal(total, total_expected)
        equal(fired, expected)
        if ticks != case.ticks:
            equal(shortcut, before)
    still = spikes(case, 1, seed=3)
    current, fired = ours.fire_static(still[0], case.ticks)
    expected = currents(conv, still)
    equal(current, expected)
    equal(fired, neurons.fire_static(expected[0], case.ticks))
    assert guards
    for memory in guards:
        assert is_poison(memory[:GUARD]).all()
        assert is_poison(memory[-GUARD:]).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_layer_equals_the_reference_bit_for_bit(guards, case):
    check(case, guards)


@pytest.mark.slow
@pytest.mark.parametrize("case", MORE_CASES, ids=str)
def test_layers_of_all_sizes_equal_the_reference(guards, case):
    check(case, guards)


def test_other_memory_is_refused():
    case = Case(2, 32, 32)
    _, ours = layer(case)
    x = spikes(case, 2)
    with pytest.raises(ValueError, match="channels-last"):
        ours.fire(x.contiguous())
    with pytest.raises(ValueError, match="channels-last"):
        ours.add_and_fire(shortcut_of(case, 2).contiguous(), x)


@pytest.mark.parametrize("config", [
    net_config("tiny"), net_config("tiny", activation="ilif", ticks=1, levels=4),
], ids=["lif", "ilif"])
def test_a_network_in_8_bits_answers_as_on_the_cpu(spec, positions, config):
    """Sums of integers are exact, so the trunk is the same to the bit."""
    network, planes = build_network(spec, config, 0), positions[40:43].tensor()
    with torch.inference_mode():
        ours, expected = (
            freeze(network, "int8", device=device, layers=layers)(planes.to(device))
            for device, layers in ((DEVICE, "fused"), ("cpu", "separate"))
        )
    for name in ("policy_logits_BA", "value_logits_BV"):
        found = getattr(ours, name).cpu()
        torch.testing.assert_close(found, getattr(expected, name), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shared_memory", [99 * 1024, 163 * 1024, 227 * 1024])
def test_tiles_fit_registers_and_shared_memory(shared_memory):
    for ticks in range(1, MOST_FUSED_TICKS + 1):
        for channels in (5, 32, 64, 128, 256):
            for outputs in (1, 8, channels):
                tiling = choose_tiling(ticks, channels, outputs, shared_memory)
                size = tiling.rows * tiling.columns
                assert (ticks + 2) * size <= 192 * 32 * NUM_WARPS
                stage = (ticks * tiling.rows + tiling.columns) * tiling.depth
                assert tiling.stages * stage * 2 <= shared_memory
                for number in (tiling.rows, tiling.columns, tiling.depth):
                    assert number & (number - 1) == 0
