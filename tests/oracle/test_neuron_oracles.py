"""The neuron against other projects' neurons: outputs and gradients."""

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
from chess_snn.nets.cpu.neuron_cpu import lif_cpu
from chess_snn.nets.model.layers import Neurons
from chess_snn.nets.model.neuron import lif

pytestmark = pytest.mark.oracle


DECAY, THRESHOLD, ALPHA = 0.5, 0.5, 2.0
OURS = pytest.mark.parametrize("ours", [lif, lif_cpu])
TICKS = pytest.mark.parametrize("ticks", [1, 2, 4, 7])


def spikes_and_gradient(neuron, current):
    """Spikes, and the gradient of a loss that weighs every spike differently."""
    current = current.clone().requires_grad_()
    spikes = neuron(current)
    weights = torch.randn(spikes.shape, generator=torch.Generator().manual_seed(2))
    (spikes * weights).sum().backward()
    return spikes.detach(), current.grad


def import_or_skip(module):
    return pytest.importorskip(
        module, reason=f"{module} is not installed: the neuron was NOT compared with it"
    )


def random_current(ticks):
    return torch.randn(ticks, 3, 5, 8, 8, generator=torch.Generator().manual_seed(ticks))


@OURS
@TICKS
def test_equals_spikingjelly_bit_for_bit(ours, ticks):
    neuron = import_or_skip("spikingjelly.activation_based.neuron")
    surrogate = import_or_skip("spikingjelly.activation_based.surrogate")
    # tau = 2 without decaying the input charges v - v / 2 + x, which is 0.5 v + x.
    node = neuron.LIFNode(
        tau=2.0, decay_input=False, v_threshold=THRESHOLD, v_reset=0.0, detach_reset=True,
        surrogate_function=surrogate.ATan(alpha=ALPHA), step_mode="m",
    )
    current = random_current(ticks)
    expected_spikes, expected_grad = spikes_and_gradient(node, current)
    spikes, grad = spikes_and_gradient(lambda x: ours(x, DECAY, THRESHOLD, ALPHA), current)
    assert 0.05 < spikes.mean() < 0.6
    assert torch.equal(spikes, expected_spikes)
    torch.testing.assert_close(grad, expected_grad, rtol=1e-6, atol=1e-7)


@OURS
@TICKS
@pytest.mark.parametrize("decay", [0.5, 0.9])
def test_equals_snntorch(ours, ticks, decay):
    snntorch = import_or_skip("snntorch")
    surrogate = import_or_skip("snntorch.surrogate")
    # It resets in the tick after the spike, and fires above the threshold, not at it; continuous
    # random currents never hit it.
    cell = snntorch.Leaky(
        beta=decay, threshold=THRESHOLD, spike_grad=surrogate.atan(alpha=ALPHA),
        reset_mechanism="zero",
    )

    def unrolled(current):
        membrane, spikes = torch.zeros_like(current[0]), []
        for tick in current:
            spike, membrane = cell(tick, membrane)
            spikes.append(spike)
        return torch.stack(spikes)

    current = random_current(ticks)
    expected_spikes, expected_grad = spikes_and_gradient(unrolled, current)
    spikes, grad = spikes_and_gradient(lambda x: ours(x, decay, THRESHOLD, ALPHA), current)
    assert torch.equal(spikes, expected_spikes)
    torch.testing.assert_close(grad, expected_grad, rtol=1e-5, atol=1e-6)


# Peers of the benchmarks compute the same network: answers and gradients.


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
    """Network of size `small`; its normalisation has seen positions and tells channels apart."""
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
