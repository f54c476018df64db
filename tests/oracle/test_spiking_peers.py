"""What benchmarks compare with computes the same network: answers and gradients."""

import copy

import numpy as np
import pytest
import torch

from benchmarks import spiking_peers
from benchmarks.harness import torch_threads
from benchmarks.spiking_peers import LAYOUTS, infer, installed_peers
from chess_snn.games import get_game
from chess_snn.games.starts import random_starts
from chess_snn.nets import build_network, count_spikes, expand_planes, net_config
from chess_snn.nets.layers import Neurons

pytestmark = pytest.mark.oracle

NUM_POSITIONS = 12
PEERS = pytest.mark.parametrize("name", ["SpikingJelly", "snnTorch"])


def make_or_skip(name):
    if name not in installed_peers():
        pytest.skip(f"{name} is not installed: the network was NOT compared with it")
    return installed_peers()[name]


@pytest.fixture(autouse=True)
def _one_thread():
    with torch_threads(1):
        yield


@pytest.fixture(scope="module")
def planes():
    game = get_game("chess")
    plies = np.linspace(0, 80, NUM_POSITIONS).astype(np.int32)
    states = random_starts(game, np.arange(NUM_POSITIONS, dtype=np.uint64), plies)
    return expand_planes(
        torch.from_numpy(game.planes(states).view(np.int64)), (8, 8), torch.float32
    )


@pytest.fixture(scope="module")
def network(planes):
    """Of size `small`, with normalisation that has seen positions and tells channels apart."""
    network = build_network(get_game("chess").spec, net_config("small"), seed=3)
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.5, 1.5, generator=generator)
                module.bias.uniform_(-0.2, 0.4, generator=generator)
        for _ in range(5):
            network.train()(planes)
    return network.eval()


def assert_same_answer(answer, expected):
    torch.testing.assert_close(
        answer.policy_logits_BA, expected.policy_logits_BA, rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(
        answer.value_logits_BV, expected.value_logits_BV, rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(answer.plies_left_B, expected.plies_left_B, rtol=1e-4, atol=1e-5)


def correlation(left, right):
    return torch.corrcoef(torch.stack([left.flatten(), right.flatten()]))[0, 1].item()


@PEERS
def test_peers_answer_as_our_network_up_to_rounding(name, network, planes):
    peer = make_or_skip(name)(network)
    assert not any(isinstance(module, Neurons) for module in peer.modules())
    assert 0.05 < count_spikes(network, planes).rate < 0.6
    expected = infer(network, planes, "fp32")
    assert expected.policy_logits_BA.std(dim=0).mean() > 0.05, "all positions look alike"
    # Twice: nothing may stay in their neurons from call to call.
    for _ in range(2):
        assert_same_answer(infer(peer, planes.contiguous(), "fp32"), expected)


@PEERS
def test_a_peer_learns_by_the_same_gradient(name, network, planes):
    ours, peer = copy.deepcopy(network).train(), make_or_skip(name)(network).train()
    gradients = []
    for each in (ours, peer):
        output = each(planes)
        loss = output.policy_logits_BA.square().mean() + output.value_logits_BV.square().mean()
        loss.backward()
        found = [p.grad.flatten() for p in each.parameters() if p.grad is not None]
        gradients.append(torch.cat(found))
    difference = (gradients[0] - gradients[1]).norm() / gradients[0].norm()
    assert difference < 1e-3
    assert gradients[0].norm() > 0


@PEERS
def test_a_peer_in_bf16_strays_no_further_than_ours(name, network, planes):
    """Spikes fall otherwise here and there, in both."""
    expected = infer(network, planes, "fp32").policy_logits_BA
    ours = infer(network, planes, "bf16").policy_logits_BA
    theirs = infer(make_or_skip(name)(network), planes, "bf16").policy_logits_BA
    assert theirs.dtype == torch.float32
    assert not torch.equal(theirs, expected)
    alike = [correlation(answer, expected) for answer in (ours, theirs)]
    assert alike[0] > 0.7
    assert alike[1] == pytest.approx(alike[0], abs=0.1)


@PEERS
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_fastest_batch_is_one_of_those_tried(name, layout, network, planes):
    peer = make_or_skip(name)(network)
    work = spiking_peers.fastest_inference(
        peer, "fp32", LAYOUTS[layout], planes, batch_sizes=(1, 4)
    )
    assert work.items in (1, 4)
    expected = infer(network, planes[: work.items], "fp32")
    assert_same_answer(work.run(), expected)


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(
        spiking_peers, "_PACKAGES", {"NoSuchLibrary": ("no_such_library", lambda network: network)}
    )
    assert installed_peers() == {}
    (note,) = spiking_peers.notes_on_missing_peers()
    assert "NoSuchLibrary is NOT installed (pip install --no-deps no_such_library)" in note
