"""A network that grows answers as before, and its new parts learn."""

import pytest
import torch

from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.nets import build_network, net_config, network_digest


def network_of(game, size, **shape):
    """A network in whose layers many neurons fire, and its inputs."""
    spec = get_game(game).spec
    network = build_network(spec, net_config(size, **shape), seed=1, readout_gain=3.0)
    stream = torch.Generator().manual_seed(2)
    planes = (torch.rand(32, network.num_planes, *spec.board_shape, generator=stream) < 0.2).float()
    with torch.no_grad():
        for norm in (part for part in network.modules() if isinstance(part, torch.nn.BatchNorm2d)):
            norm.weight.uniform_(0.5, 1.5, generator=stream)
            norm.bias.uniform_(-0.5, 0.5, generator=stream)
            norm.momentum = 0.9
        for _ in range(3):
            network(planes)
    return network.eval(), planes


@pytest.mark.parametrize("size", ["3x20", "5x12", "5x31"])
@pytest.mark.parametrize("shape", [
    {"activation": "relu", "ticks": 1}, {"activation": "ilif", "ticks": 1, "levels": 8},
    {"activation": "lif", "ticks": 3}, {"activation": "relu", "ticks": 1, "target_readout": True},
], ids=lambda shape: "-".join(map(str, shape.values())))
@pytest.mark.parametrize("game", ["chess", "2048"])
def test_answers_stay(game, shape, size):
    network, planes = network_of(game, "3x12", **shape)
    grown = network.with_config(net_config(size, **shape), seed=4).eval()
    assert grown.config.size == size
    with torch.no_grad():
        before, after = network(planes), grown(planes)
    for name in before.__slots__:
        ours, theirs = getattr(before, name), getattr(after, name)
        assert ours.std(0).max() > 1e-2  # it does not answer the same to all
        # Rounding moves a few currents over a threshold.
        assert torch.isclose(ours, theirs, rtol=1e-4, atol=1e-5).float().mean() > 0.97


def test_copies_and_new_blocks_learn_different_things():
    network, planes = network_of("chess", "2x8", activation="relu", ticks=1)
    grown = network.with_config(net_config("3x16", activation="relu", ticks=1), seed=4).train()
    grown(planes).value_logits_BV.square().sum().backward()
    weight = grown.blocks[0].conv1.conv.weight
    assert not torch.equal(weight[:8], weight[8:])
    assert not torch.allclose(weight.grad[:8], weight.grad[8:])
    assert grown.blocks[2].conv2.norm.weight.grad.abs().min() > 0
    assert torch.equal(grown.blocks[2].conv2.norm.weight, torch.zeros(16))


def test_the_seed_alone_decides_how_it_grows():
    network, _ = network_of("chess", "2x8", activation="relu", ticks=1)
    wanted = net_config("3x12", activation="relu", ticks=1)
    digests = [network_digest(network.with_config(wanted, seed)) for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("size", ["1x8", "2x7", "1x16"])
def test_it_cannot_shrink(size):
    network, _ = network_of("chess", "2x8")
    with pytest.raises(ConfigError, match=f"2x8.*{size}"):
        network.with_config(net_config(size))
