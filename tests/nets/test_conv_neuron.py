"""The convolution with its neurons as one kernel, against the reference bit for bit.

Without a GPU it is interpreted. Sums are exact in both precisions: weights are small multiples of
1/64. So the results must be equal, though sums are in another order.
"""

import math
from dataclasses import dataclass

import pytest
import torch
from torch.nn.functional import conv2d

from chess_snn.nets import NetConfig, build_network, freeze, net_config
from chess_snn.nets.conv_neuron import MOST_FUSED_TICKS, FusedConv, choose_tiling
from chess_snn.nets.folded_convs import round_weights
from chess_snn.nets.inference_neurons import ReferenceNeurons

pytest.importorskip("triton", reason="triton is not installed: its kernels are not tested")

pytestmark = pytest.mark.usefixtures("true_bfloat16")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
GUARD = 1024
"""Numbers before and behind a tensor, which no kernel may read or write."""
POISON = {torch.uint8: 113, torch.bfloat16: torch.nan, torch.float32: torch.nan}


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
    warps: int = 4

    @property
    def config(self):
        activation = {"activation": "ilif", "levels": self.levels} if self.levels else {}
        return NetConfig(ticks=self.ticks, decay=0.6, threshold=0.7, **activation)


CASES = [
    Case(1, 64, 64, batch=5, levels=4, board=(4, 8)),
    Case(MOST_FUSED_TICKS, 32, 32, board=(4, 5), warps=8),
    Case(3, 48, 24, board=(4, 4)), Case(2, 5, 7, batch=1), Case(2, 32, 8, side=1, board=(4, 4)),
    Case(2, 17, 32, batch=5, board=(4, 4)), Case(1, 32, 32, batch=7, board=(3, 5), levels=2),
]
MORE_CASES = [
    *(Case(ticks, 32, 32, board=board, warps=4 + ticks % 2 * 4)
      for ticks in range(1, MOST_FUSED_TICKS + 1) for board in ((4, 5), (8, 8))),
    Case(4, 64, 64), Case(1, 32, 32, levels=64, warps=8), Case(3, 48, 24), Case(2, 32, 8, side=1),
    Case(2, 128, 128, batch=1), Case(1, 256, 256, batch=1, levels=4),
    Case(1, 64, 64, batch=5, levels=4),
    *(Case(ticks, channels, channels, levels=levels, warps=warps)
      for channels in (32, 64, 128, 256)
      for ticks, levels in ((1, 0), (1, 4), (2, 0), (4, 0), (8, 0)) for warps in (4, 8)),
]


@pytest.fixture
def guards(monkeypatch):
    """What is allocated is poisoned, and has guards on both sides."""
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


def layer(case, is_integer, seed=0, is_exact=True):
    """The convolution, and the layer that does its work."""
    generator = torch.Generator().manual_seed(seed)
    conv = torch.nn.Conv2d(case.channels, case.outputs, case.side, padding=case.side // 2)
    conv.requires_grad_(False)
    for tensor in (conv.weight, conv.bias):
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.2)
        if is_exact:
            tensor.mul_(64).round_().div_(64)
    return conv, FusedConv(conv, case.config, is_integer, case.warps).to(DEVICE)


def spikes(case, ticks, dtype, seed=1):
    """[T, B, C, H, W], channels-last, between guards."""
    generator = torch.Generator().manual_seed(seed)
    shape = (ticks, case.batch, *case.board, case.channels)
    most = max(case.levels, 1)
    fired = torch.randint(0, most + 1, shape, generator=generator)
    fired *= torch.rand(shape, generator=generator) < 0.3
    return in_memory(fired, dtype)


def shortcut_of(case, ticks):
    shape = (ticks, case.batch, *case.board, case.outputs)
    values = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    return in_memory(values.mul(8).round().div(8), torch.bfloat16)


def in_memory(values, dtype):
    memory = torch.full((values.numel() + 2 * GUARD,), POISON[dtype], dtype=dtype, device=DEVICE)
    inside = memory[GUARD:-GUARD].view(values.shape)
    inside.copy_(values)
    return inside.permute(0, 1, 4, 2, 3)


def currents(conv, is_integer, x_TBCHW):
    """As bfloat16, of exact sums."""
    weight, scale, bias = conv.weight.bfloat16(), torch.ones(1), conv.bias.bfloat16()
    if is_integer:
        weight, scale = round_weights(conv.weight)
        bias = conv.bias
    sums = conv2d(x_TBCHW.cpu().flatten(0, 1).double(), weight.double(), padding=conv.padding)
    current = sums.float() * scale.view(-1, 1, 1) + bias.float().view(-1, 1, 1)
    return current.bfloat16().unflatten(0, x_TBCHW.shape[:2])


def check(case, is_integer, guards):
    """Every method of the layer gives what the reference gives."""
    conv, ours = layer(case, is_integer)
    neurons, dtype = ReferenceNeurons(case.config), torch.uint8 if is_integer else torch.bfloat16

    def equal(found, expected):
        found = found.cpu()
        assert not is_poison(found).any()
        assert torch.equal(found.float(), expected.float())

    x = spikes(case, case.ticks, dtype)
    current = currents(conv, is_integer, x)
    fired = ours.fire(x)
    equal(fired, neurons.fire(current.clone()))
    assert (fired.dtype, fired.stride(2)) == (dtype, 1)
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
    still = spikes(case, 1, dtype, seed=3)
    current, fired = ours.fire_static(still[0], case.ticks)
    expected = currents(conv, is_integer, still)
    equal(current, expected)
    equal(fired, neurons.fire_static(expected[0], case.ticks))
    assert guards
    for memory in guards:
        assert is_poison(memory[:GUARD]).all()
        assert is_poison(memory[-GUARD:]).all()


@pytest.mark.parametrize("is_integer", [True, False], ids=["int8", "bf16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_layer_equals_the_reference_bit_for_bit(guards, case, is_integer):
    check(case, is_integer, guards)


@pytest.mark.slow
@pytest.mark.parametrize("is_integer", [True, False], ids=["int8", "bf16"])
@pytest.mark.parametrize("case", MORE_CASES, ids=str)
def test_layers_of_all_sizes_equal_the_reference(guards, case, is_integer):
    check(case, is_integer, guards)


def test_few_spikes_fall_otherwise_where_sums_are_rounded():
    """Of n products in float32 a sum has an error below n 2^-24 of its terms.

    That is less than a step of bfloat16 by a factor of some hundred, so a current is rounded to
    another number in less than one of a hundred cases, and to a spike more or less far more rarely.
    """
    case = Case(4, 64, 64)
    conv, ours = layer(case, is_integer=False, is_exact=False)
    x = spikes(case, 4, torch.bfloat16)
    expected = ReferenceNeurons(case.config).fire(currents(conv, False, x))
    assert (ours.fire(x).cpu() != expected).float().mean() < 1e-3


def test_other_memory_is_refused():
    case = Case(2, 32, 32)
    _, ours = layer(case, is_integer=False)
    x = spikes(case, 2, torch.bfloat16)
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
            for device, layers in ((DEVICE, "fused-4"), ("cpu", "separate"))
        )
    for name in ("policy_logits_BA", "value_logits_BV"):
        found = getattr(ours, name).cpu()
        torch.testing.assert_close(found, getattr(expected, name), rtol=1e-5, atol=1e-5)


def test_a_network_in_bf16_says_nearly_what_separate_layers_say(spec, positions):
    network, planes = build_network(spec, net_config("tiny"), 0), positions[40:43].tensor()
    with torch.inference_mode():
        ours, expected = (
            freeze(network, "bf16", device=DEVICE, layers=layers)(planes.to(DEVICE))
            for layers in ("fused-8", "separate")
        )
    distance = ours.value_logits_BV.softmax(1) - expected.value_logits_BV.softmax(1)
    assert distance.abs().sum(1).mean() / 2 < 0.02


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("bytes_of_a_spike", [1, 2])
@pytest.mark.parametrize("shared_memory", [99 * 1024, 163 * 1024, 227 * 1024])
def test_tiles_fit_registers_and_shared_memory(warps, bytes_of_a_spike, shared_memory):
    for ticks in range(1, MOST_FUSED_TICKS + 1):
        for channels in (5, 32, 64, 128, 256):
            for outputs in (1, 8, channels):
                tiling = choose_tiling(
                    ticks, channels, outputs, bytes_of_a_spike, warps, shared_memory
                )
                size = tiling.rows * tiling.columns
                assert (ticks + 2) * size <= 192 * 32 * warps
                stage = (ticks * tiling.rows + tiling.columns) * tiling.depth * bytes_of_a_spike
                assert tiling.stages * stage * 8 // warps <= shared_memory
                for number in (tiling.rows, tiling.columns, tiling.depth):
                    assert number & (number - 1) == 0
