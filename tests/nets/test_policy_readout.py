"""The readout of moves from the squares that they leave and go to, against python-chess."""

from dataclasses import replace
from importlib.util import find_spec

import chess
import numpy as np
import pytest
import torch
from torch import nn

from chess_snn.games import get_game
from chess_snn.games.starts import random_starts
from chess_snn.nets import build_network, net_config
from chess_snn.nets.analysis.operations import POLICY_READOUT, count_operations
from chess_snn.nets.model import readouts
from chess_snn.nets.model.readouts import PolicyReadout

WITHOUT = net_config("tiny", blocks=1)
WITH = replace(WITHOUT, target_readout=True)
CHANNELS = 5


@pytest.fixture
def readout(spec):
    torch.manual_seed(2)
    planes = spec.policy_planes
    return PolicyReadout(
        spec, nn.Linear(CHANNELS, planes), nn.Linear(CHANNELS, planes, bias=False)
    )


def test_a_move_is_read_from_the_squares_that_python_chess_names(readout, spec):
    game = get_game("chess")
    states = random_starts(
        game, np.arange(64, dtype=np.uint64), np.linspace(0, 90, 64).astype(np.int32)
    )
    legal, num_legal = game.legal_actions(states)
    rates = torch.rand(64, CHANNELS, 8, 8)
    found = readout.of_legal(rates, torch.from_numpy(legal), torch.from_numpy(num_legal))
    for row, state in enumerate(states):
        # Ranks count from the side to move.
        flip = 0 if chess.Board(game.format_state(state)).turn == chess.WHITE else 56
        for column in range(num_legal[row]):
            action = int(legal[row, column])
            move = chess.Move.from_uci(game.format_action(state, action))
            leaves, reaches = (
                rates[row, :, square // 8, square % 8]
                for square in (move.from_square ^ flip, move.to_square ^ flip)
            )
            plane = action % spec.policy_planes
            expected = readout.layer.bias[plane] + readout.layer.weight[plane] @ leaves
            expected += readout.target.weight[plane] @ reaches
            assert found[row, column].item() == pytest.approx(expected.item(), abs=1e-5)


def test_a_process_that_has_played_can_train(readout, positions):
    readouts._target_actions.cache_clear()
    lists = torch.from_numpy(positions.legal_actions), torch.from_numpy(positions.num_legal)
    rates = torch.rand(len(lists[0]), CHANNELS, 8, 8)
    with torch.inference_mode():
        readout.of_legal(rates, *lists)
    logits = readout.of_legal(rates, *lists)
    logits[logits.isfinite()].sum().backward()
    assert readout.target.weight.grad.abs().sum() > 0


def test_the_compiled_kernels_do_what_other_devices_do(readout, positions):
    """Gradients too."""
    lists = torch.from_numpy(positions.legal_actions), torch.from_numpy(positions.num_legal)
    behind = torch.arange(lists[0].shape[1]) >= lists[1].unsqueeze(1)
    weights = torch.randn(lists[0].shape).masked_fill(behind, 0)
    found = []
    for read in (readout.of_legal, readout._choose_legal):
        layers = nn.ModuleList([readout.layer, readout.target])
        layers.zero_grad()
        rates = torch.rand(
            len(behind), CHANNELS, 8, 8, generator=torch.Generator().manual_seed(3)
        ).requires_grad_()
        logits = read(rates, *lists)
        (logits.masked_fill(behind, 0) * weights).sum().backward()
        found.append((logits, rates.grad, *(each.grad.clone() for each in layers.parameters())))
    assert all(gradient.abs().sum() > 0 for gradient in found[0][1:])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
@pytest.mark.parametrize("has_target", [True, False])
def test_the_kernel_for_gpus_reads_what_the_others_read(readout, positions, has_target):
    """Interpreted, without a GPU."""
    readout = replace(readout, target=readout.target if has_target else None)
    positions = positions[np.argsort(positions.num_legal)[::-12]]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rates = torch.rand(len(positions.num_legal), CHANNELS, 8, 8)
    lists = torch.from_numpy(positions.legal_actions), torch.from_numpy(positions.num_legal)
    with torch.inference_mode():
        expected = readout.of_legal(rates, *lists)
        for layer in filter(None, (readout.layer, readout.target)):
            layer.to(device)
        found = readout._read_legal_on_gpu(rates.to(device), *(each.to(device) for each in lists))
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)


def test_no_square_off_the_board_says_anything(readout, spec):
    """All moves of the first plane go one rank up: from the last rank, off the board."""
    rates = torch.rand(1, CHANNELS, 8, 8)
    assert spec.policy_steps[0] == (1, 0)
    plane = readout.of_all(rates).view(8, 8, spec.policy_planes)[:, :, 0]
    own = torch.einsum("chw,c->hw", rates[0], readout.layer.weight[0]) + readout.layer.bias[0]
    torch.testing.assert_close(plane[-1], own[-1])
    assert (plane[:-1] - own[:-1]).abs().min() > 0


def test_targets_cost_as_much_as_the_rest_of_the_readout(spec):
    operations = count_operations(spec, WITH)
    (readout_macs,) = (each.macs for each in operations.passes if each.name == POLICY_READOUT)
    assert operations.macs == count_operations(spec, WITHOUT).macs + readout_macs
    own = build_network(spec, WITH, 1)
    assert own.num_parameters - build_network(spec, WITHOUT, 1).num_parameters == (
        spec.policy_planes * WITH.channels
    )


def test_the_first_policy_is_as_uniform_as_without_targets(spec, positions):
    with_targets = build_network(spec, WITH, 4).eval()
    without = build_network(spec, WITHOUT, 4).eval()
    without.load_state_dict(with_targets.state_dict(), strict=False)
    with torch.inference_mode():
        assert torch.equal(
            with_targets(positions.tensor()).policy_logits_BA,
            without(positions.tensor()).policy_logits_BA,
        )


def test_a_dense_head_has_none():
    spec = get_game("2048").spec
    assert build_network(spec, WITH, 1).policy.target_readout is None
    assert count_operations(spec, WITH) == count_operations(spec, WITHOUT)
