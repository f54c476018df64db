"""Convolutions of spikes with weights of 8 bits: exact but for the weights."""

import pytest
import torch
from torch import nn

from chess_snn.games import get_game
from chess_snn.nets import build_network, folded_convs, freeze, inference, net_config
from chess_snn.nets.folded_convs import BinaryConv
from chess_snn.nets.inference_neurons import CompiledNeurons
from chess_snn.nets.model.config import NetConfig

BOARD = (8, 8)


def spikes(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(shape, generator=generator).lt(0.3).to(torch.uint8)
    return drawn.contiguous(memory_format=torch.channels_last)


def conv(channels_in, channels_out, kernel_size, seed=0):
    torch.manual_seed(seed)
    return nn.Conv2d(channels_in, channels_out, kernel_size, padding=kernel_size // 2)


@pytest.mark.parametrize(
    ("channels_in", "channels_out", "kernel_size"),
    [(28, 32, 3), (32, 32, 3), (48, 48, 3), (64, 64, 3), (32, 8, 1), (5, 7, 3)],
)
def test_sums_are_those_of_the_rounded_weights(channels_in, channels_out, kernel_size):
    original = conv(channels_in, channels_out, kernel_size)
    fired = spikes(12, channels_in, 8, 8)
    scale = original.weight.abs().amax((1, 2, 3)).view(-1, 1, 1, 1) / 127
    rounded = original.weight.div(scale).round()
    assert rounded.abs().max() == 127
    with torch.no_grad():
        expected = nn.functional.conv2d(
            fired.double(), (rounded * scale).double(), original.bias.double(),
            padding=kernel_size // 2,
        )
        currents = BinaryConv(original, BOARD)(fired)
    assert currents.dtype == torch.bfloat16
    assert currents.is_contiguous(memory_format=torch.channels_last)
    # One rounding to the eight digits of bfloat16.
    torch.testing.assert_close(currents.double(), expected, rtol=2**-8, atol=1e-6)


@pytest.mark.parametrize("has_bfloat16", [False, True])
def test_processors_with_and_without_bfloat16_give_the_same_bits(monkeypatch, has_bfloat16):
    layer, fired = BinaryConv(conv(32, 32, 3), (4, 4)), spikes(2, 32, 4, 4)
    expected = layer(fired)
    monkeypatch.setattr(folded_convs, "processor_has_bfloat16", lambda: has_bfloat16)
    assert torch.equal(layer(fired), expected)


@pytest.mark.parametrize(
    ("channels_in", "channels_out", "kernel_size", "most_spikes"),
    [(28, 32, 3, 1), (32, 8, 1, 8), (48, 48, 3, 64), (4096, 2, 1, 64)],
)
def test_processors_without_integer_products_give_the_same_bits(
    monkeypatch, channels_in, channels_out, kernel_size, most_spikes
):
    """With 4,096 channels the sums are too large for float32; biases cancel most of them."""
    original = conv(channels_in, channels_out, kernel_size)
    nn.init.constant_(original.weight[-1:], 1.0)
    largest = channels_in * kernel_size**2 * most_spikes
    nn.init.constant_(original.bias[-1:], -largest)
    generator = torch.Generator().manual_seed(2)
    fewer = torch.randint(0, 2, (12, channels_in, 6, 8), generator=generator)
    fired = (most_spikes - fewer).to(torch.uint8).contiguous(memory_format=torch.channels_last)
    expected = BinaryConv(original, (6, 8))(fired)
    monkeypatch.setattr(folded_convs, "has_integer_convolutions", lambda: False)
    currents = BinaryConv(original, (6, 8))(fired)
    assert torch.equal(currents, expected)
    assert currents.is_contiguous(memory_format=torch.channels_last)


def test_without_bfloat16_a_network_in_bf16_answers_as_with_it(monkeypatch):
    game = get_game("2048")
    network = build_network(game.spec, net_config("tiny"), seed=0).eval()
    planes = torch.rand(4, game.spec.num_planes, 4, 4).lt(0.1).float()
    answers = []
    for has_bfloat16 in (False, True):
        for module in (folded_convs, inference):
            monkeypatch.setattr(module, "processor_has_bfloat16", lambda has=has_bfloat16: has)
        answer = freeze(network, "bf16")(planes)
        answers.append([answer.policy_logits_BA, answer.value_logits_BV])
    # Sums may round otherwise, and then a spike may fall otherwise.
    for both in zip(*answers, strict=True):
        assert torch.corrcoef(torch.stack([logits.flatten() for logits in both]))[0, 1] > 0.99


def test_a_channel_without_weights_gives_its_bias():
    empty = conv(32, 4, 3)
    nn.init.zeros_(empty.weight)
    currents = BinaryConv(empty, BOARD)(spikes(2, 32, 8, 8))
    expected = empty.bias.detach().bfloat16().view(1, -1, 1, 1).expand_as(currents)
    assert torch.equal(currents, expected)


def test_images_do_not_influence_each_other():
    layer, fired = BinaryConv(conv(32, 32, 3), BOARD), spikes(64, 32, 8, 8)
    whole = layer(fired)
    for lo, hi in ((0, 1), (3, 10), (31, 64)):
        part = fired[lo:hi].contiguous(memory_format=torch.channels_last)
        assert torch.equal(layer(part), whole[lo:hi])


@pytest.mark.parametrize("ticks", [1, 2, 5])
def test_integer_spikes_are_the_spikes(ticks):
    config = NetConfig(ticks=ticks)
    floating, integer = CompiledNeurons(config), CompiledNeurons(config, integer_spikes=True)
    current, shortcut = torch.randn(2, ticks, 3, 2500).bfloat16()
    static = current[0]
    for ours, expected in (
        (integer.fire_static(static, ticks), floating.fire_static(static, ticks)),
        (integer.fire(current.clone()), floating.fire(current.clone())),
        (integer.add_and_fire(shortcut, current.clone())[1],
         floating.add_and_fire(shortcut, current.clone())[1]),
    ):
        assert ours.dtype == torch.uint8
        assert torch.equal(ours.bfloat16(), expected)
    assert torch.equal(integer.mean_rate(current.clone()), floating.mean_rate(current.clone()))


@pytest.mark.parametrize("size", ["tiny", "small"])
def test_a_network_of_8_bits_says_nearly_what_it_says_in_float32(spec, positions, size):
    network = build_network(spec, net_config(size), 0)
    with torch.inference_mode():
        int8, bf16, fp32 = (
            freeze(network, precision)(positions.tensor())
            for precision in ("int8", "bf16", "fp32")
        )

    def distance(output):
        difference = output.value_logits_BV.softmax(1) - fp32.value_logits_BV.softmax(1)
        return difference.abs().sum(1).mean().item() / 2

    assert 0 < distance(int8) < 0.05
    assert distance(int8) < 2 * distance(bf16)
