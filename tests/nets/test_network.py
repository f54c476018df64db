"""The module that is trained: outputs, gradients, legal actions, input planes."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.games import ValueKind
from chess_snn.nets import SIZES, build_network, expand_planes, net_config, network_digest
from chess_snn.nets.model.planes import spread_by_bytes

TINY = net_config("tiny")
BOTH = pytest.mark.parametrize("config", [TINY, TINY.baseline()], ids=["spiking", "baseline"])


@BOTH
def test_logits_are_float32_under_autocast_too(spec, positions, config):
    network = build_network(spec, config, 0)
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            output = network(positions[:4].tensor())
        assert output.policy_logits_BA.shape == (4, spec.num_actions)
        assert output.value_logits_BV.shape == (4, 3)
        assert output.plies_left_B.shape == (4,)
        assert {output.policy_logits_BA.dtype, output.value_logits_BV.dtype,
                output.plies_left_B.dtype} == {torch.float32}


def test_an_action_is_square_times_planes_plus_plane(spec, positions):
    network = build_network(spec, TINY, 0).eval()
    before = network(positions[:1].tensor()).policy_logits_BA.view(64, 73)
    with torch.no_grad():
        network.policy.readout.bias[7] += 100
    after = network(positions[:1].tensor()).policy_logits_BA.view(64, 73)
    raised = (after - before) > 50
    assert raised[:, 7].all()
    assert raised.sum() == 64


def test_squares_of_actions_are_squares_of_planes(spec):
    config = net_config("tiny", blocks=1)
    network = build_network(spec, config, 0).eval()
    # A piece in one corner changes the logits near that corner alone.
    probe = torch.zeros(2, spec.num_planes, 8, 8)
    probe[1, :, 0, 7] = 1
    difference = network(probe).policy_logits_BA.view(2, 8, 8, 73).diff(dim=0)[0].abs().sum(-1)
    assert difference[0, 7] > 0
    reach = 1 + 2 * config.blocks + 1  # 3x3 convolutions between input and readout
    assert (difference[reach + 1 :] == 0).all()
    assert (difference[:, : 7 - reach] == 0).all()


@pytest.mark.parametrize("size", ["tiny", "small"])
@pytest.mark.parametrize("baseline", [False, True], ids=["spiking", "baseline"])
def test_the_first_policy_is_near_uniform(spec, positions, size, baseline):
    config = SIZES[size].baseline() if baseline else SIZES[size]
    network = build_network(spec, config, 0).eval()
    with torch.no_grad():
        output = network(positions.tensor())
    legal_logits = positions.legal_logits(output.policy_logits_BA)
    policy = legal_logits.softmax(1)
    entropy = torch.special.entr(policy).sum(1)
    choices = torch.from_numpy(positions.num_legal)
    ratio = entropy[choices > 1] / choices[choices > 1].log()
    assert ratio.min() >= 0.9
    assert 0.01 < legal_logits[legal_logits.isfinite()].std() <= 1.5
    assert output.value_logits_BV.abs().max() < 3
    assert (output.plies_left_B - math.log(1 + 50)).abs().max() < 1.5


@BOTH
def test_gradient_reaches_every_parameter(spec, positions, config):
    network = build_network(spec, config, 0).train()
    output = network(positions[:16].tensor())
    loss = output.policy_logits_BA.square().mean() + output.value_logits_BV.square().mean()
    (loss + output.plies_left_B.square().mean()).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("config", [
    TINY, pytest.param(TINY.baseline(), marks=pytest.mark.slow),
], ids=["spiking", "baseline"])
def test_one_batch_can_be_overfitted(spec, positions, overfit, config):
    losses = overfit(build_network(spec, config, 0), positions[:16], steps=80)
    assert losses[0] > 3.0
    assert losses[-1] < 0.4


@BOTH
def test_no_state_between_calls_nor_between_rows(spec, positions, config):
    network = build_network(spec, config, 0).eval()
    planes = positions[:24].tensor()
    with torch.no_grad():
        first = network(planes)
        network(1 - planes)
        again = network(planes)
        shuffled = network(planes.flip(0))
    assert torch.equal(first.policy_logits_BA, again.policy_logits_BA)
    assert torch.equal(first.value_logits_BV, again.value_logits_BV)
    assert torch.equal(first.policy_logits_BA, shuffled.policy_logits_BA.flip(0))
    assert torch.equal(first.value_logits_BV, shuffled.value_logits_BV.flip(0))
    assert torch.equal(first.plies_left_B, shuffled.plies_left_B.flip(0))


def test_the_seed_alone_decides_the_weights(spec):
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = network_digest(build_network(spec, TINY, 5))
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert network_digest(build_network(spec, TINY, 5)) == first
    assert network_digest(build_network(spec, TINY, 6)) != first
    build_network(spec, TINY, 2**64 - 1)


def test_the_twin_has_the_same_parameters(spec):
    spiking, baseline = build_network(spec, TINY, 0), build_network(spec, TINY.baseline(), 0)
    assert network_digest(spiking) == network_digest(baseline)


def test_a_game_with_few_actions_and_a_return(spec):
    small_game = dataclasses.replace(
        spec, name="slide", num_actions=4, policy_steps=(), num_planes=5, board_shape=(4, 4),
        value_kind=ValueKind.RETURN,
    )
    network = build_network(small_game, TINY, 0)
    output = network(torch.rand(3, 5, 4, 4).round())
    assert output.policy_logits_BA.shape == (3, 4)
    assert output.value_logits_BV.shape == (3, 128)
    assert output.plies_left_B.shape == (3,)


# Logits of legal actions alone, and their gradient, against those of all actions.


@pytest.fixture
def lists(positions):
    few = positions[:24]
    return few, torch.from_numpy(few.legal_actions), torch.from_numpy(few.num_legal)


@pytest.mark.parametrize("config", [
    net_config("tiny"), net_config("tiny", target_readout=True), net_config("tiny").baseline()
], ids=["spiking", "with targets", "baseline"])
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


# Bitboards to planes, against Python's own bits.


WORDS = st.lists(
    st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3), min_size=1, max_size=4
)


@given(
    WORDS,
    st.sampled_from([(8, 8), (4, 4), (3, 5), (1, 1)]),
    st.sampled_from([torch.uint8, torch.bfloat16, torch.float32, torch.float64]),
)
def test_bit_s_is_row_times_width_plus_column(words, board_shape, dtype):
    height, width = board_shape
    array = np.array(words, dtype=np.uint64)
    tensor = torch.from_numpy(array.view(np.int64))
    planes = expand_planes(tensor, board_shape, dtype)
    squares = [[row * width + column for column in range(width)] for row in range(height)]
    expected = [
        [[[word >> square & 1 for square in row] for row in squares] for word in position]
        for position in words
    ]
    assert planes.dtype == dtype
    assert planes.tolist() == expected
    # Other devices use this one.
    anywhere = spread_by_bytes(tensor, height * width, dtype)
    assert torch.equal(anywhere, planes.permute(0, 2, 3, 1).flatten(1, 2))


def test_a_slice_of_columns_is_read_in_place():
    array = np.arange(12, dtype=np.uint64).reshape(3, 4)
    words = torch.from_numpy(array.view(np.int64))
    expanded = expand_planes(words, (8, 8), torch.float32)
    assert torch.equal(expand_planes(words[:, 1:3], (8, 8), torch.float32), expanded[:, 1:3])
    assert expanded.is_contiguous(memory_format=torch.channels_last)
