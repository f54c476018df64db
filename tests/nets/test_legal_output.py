"""Logits of legal actions alone, and their gradient, against those of all actions."""

import pytest
import torch

from chess_snn.nets import build_network, net_config


@pytest.fixture
def lists(positions):
    few = positions[:24]
    return few, torch.from_numpy(few.legal_actions), torch.from_numpy(few.num_legal)


@pytest.mark.parametrize("config", [net_config("tiny"), net_config("tiny").baseline()],
                         ids=["spiking", "baseline"])
def test_values_and_gradients_are_those_of_all_actions(spec, lists, config):
    few, legal, num_legal = lists
    networks = [build_network(spec, config, 1) for _ in range(2)]
    torch.manual_seed(0)
    weights = torch.randn(legal.shape)
    weights[torch.arange(legal.shape[1]) >= num_legal.unsqueeze(1)] = 0.0

    ours = networks[0].legal_output(few.tensor(), legal, num_legal)
    output = networks[1](few.tensor())
    expected = few.legal_logits(output.policy_logits_BA)
    torch.testing.assert_close(ours.legal_logits_BL, expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(ours.value_logits_BV, output.value_logits_BV)
    assert torch.equal(ours.plies_left_B, output.plies_left_B)

    for logits in (ours.legal_logits_BL, expected):
        (logits.masked_fill(weights == 0, 0.0) * weights).sum().backward()
    for one, other in zip(networks[0].policy.parameters(), networks[1].policy.parameters(),
                          strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5)
    stems = [network.stem.conv.weight.grad for network in networks]
    assert stems[0].abs().sum() > 0
    torch.testing.assert_close(*stems, rtol=1e-3, atol=1e-4)


def test_what_stands_behind_a_list_has_no_gradient(spec, lists):
    few, legal, num_legal = lists
    network = build_network(spec, net_config("tiny"), 1)
    logits = network.legal_output(few.tensor(), legal, num_legal).legal_logits_BL
    behind = torch.arange(legal.shape[1]) >= num_legal.unsqueeze(1)
    assert (logits[behind] == -torch.inf).all()
    logits.backward(behind.float())
    assert network.policy.readout.weight.grad.abs().sum() == 0
    assert network.policy.readout.bias.grad.abs().sum() == 0
