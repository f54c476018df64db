"""Early exit answers what networks of fewer ticks answer, and all ticks where nothing settles."""

import numpy as np
import pytest
import torch
from lively_networks import lively_network

from chess_snn.errors import ConfigError
from chess_snn.nets import freeze, make_evaluator, net_config
from chess_snn.nets.early_exit import EarlyExitNetwork

TICKS = 4
CONFIG = net_config("tiny", ticks=TICKS)
PRECISIONS = ["fp32", "bf16", "int8"]
NEVER = 1.0
"""A lead that no position with a choice has."""


def network_of(spec):
    """One with opinions: some of its positions settle sooner than others."""
    network = lively_network(spec, CONFIG)
    with torch.no_grad():
        network.policy.readout.weight.mul_(8)
    return network


def lists_of(positions):
    return torch.from_numpy(positions.legal_actions), torch.from_numpy(positions.num_legal)


def probabilities(logits_BL):
    return logits_BL.softmax(1).nan_to_num(0.0)


def leads(logits_BL):
    best = probabilities(logits_BL).topk(2).values
    return best[:, 0] - best[:, 1]


@pytest.fixture(params=PRECISIONS)
def precision(request):
    return request.param


def assert_close(found, expected, precision):
    """But for single rows where rounding lets a spike fall otherwise."""
    is_close = [
        torch.isclose(one, other, rtol=1e-4, atol=1e-4, equal_nan=True).all(1)
        for one, other in zip(found, expected, strict=True)
    ]
    share = (is_close[0] & is_close[1]).double().mean().item()
    assert share >= (1.0 if precision == "fp32" else 0.95)


def test_without_an_exit_it_is_the_ordinary_evaluation(of_both_games, precision):
    positions = of_both_games
    frozen = freeze(network_of(positions.spec), precision)
    early = EarlyExitNetwork(frozen, NEVER)
    many = positions.num_legal != 1  # one with no choice settles at once
    asked = positions[many]
    planes = asked.tensor()
    with torch.inference_mode():
        assert_close(
            early.answer(planes, *lists_of(asked)), frozen.answer(planes, *lists_of(asked)),
            precision,
        )
    assert early.mean_ticks == TICKS


@pytest.mark.parametrize("margin", [0.05, 0.3])
def test_each_position_has_the_answer_of_the_tick_at_which_it_settled(
    of_both_games, precision, margin
):
    positions = of_both_games
    network, planes, lists = network_of(positions.spec), positions.tensor(), lists_of(positions)
    early = EarlyExitNetwork(freeze(network, precision), margin)
    with torch.inference_mode():
        found = early.answer(planes, *lists)
        after = [
            freeze(network.with_ticks(ticks), precision).answer(planes, *lists)
            for ticks in range(1, TICKS + 1)
        ]
    settled = torch.stack([leads(logits) >= margin for logits, _ in after])
    settled[-1] = True
    first_B = settled.int().argmax(0)
    assert len(set(first_B.tolist())) > 1
    rows = torch.arange(len(planes))
    expected = [torch.stack([each[k] for each in after])[first_B, rows] for k in (0, 1)]
    assert_close(found, expected, precision)
    assert early.mean_ticks == pytest.approx((first_B + 1).double().mean().item(), rel=0.02)
    assert early.num_positions == len(planes)


def test_a_position_is_answered_the_same_in_any_company(positions):
    early = EarlyExitNetwork(freeze(network_of(positions.spec), "fp32"), 0.1)
    with torch.inference_mode():
        whole = early.answer(positions.tensor(), *lists_of(positions))
        for rows in ([5], [5, 40, 41], range(5, 40)):
            part = positions[np.array(rows)]
            alone = early.answer(part.tensor(), *lists_of(part))
            for one, other in zip(alone, whole, strict=True):
                assert torch.equal(one[0], other[5])


def test_nature_and_forced_moves(boards):
    """One legal action settles at once; where nature moves, nothing does."""
    early = EarlyExitNetwork(freeze(network_of(boards.spec), "fp32"), 1e-6)
    natures, forced = boards[boards.num_legal == 0], boards[boards.num_legal == 1]
    with torch.inference_mode():
        early.answer(natures.tensor(), *lists_of(natures))
        assert early.mean_ticks == TICKS
        early.answer(forced.tensor(), *lists_of(forced))
    assert early.num_ticks == TICKS * len(natures.planes) + len(forced.planes)


def test_a_batch_of_natures_moves_alone_bug(boards):
    natures = boards[boards.num_legal == 0]
    asked = (natures.planes, natures.legal_actions, natures.num_legal)
    network = network_of(boards.spec)
    with make_evaluator(network, precision="fp32") as plain:
        expected = plain.evaluate(*asked)
    with make_evaluator(network, precision="fp32", exit_margin=0.5) as evaluator:
        found = evaluator.evaluate(*asked)
    np.testing.assert_allclose(found.value_stm, expected.value_stm, rtol=1e-4, atol=1e-4)
    assert np.isneginf(found.legal_logits).all()


def test_an_evaluator_stops_early_when_asked(positions):
    network = network_of(positions.spec)
    asked = (positions.planes, positions.legal_actions, positions.num_legal)
    with make_evaluator(network, precision="fp32") as plain:
        expected = plain.evaluate(*asked)
    with make_evaluator(network, precision="fp32", exit_margin=NEVER, num_threads=2) as evaluator:
        found = evaluator.evaluate(*asked)
    np.testing.assert_allclose(found.legal_logits, expected.legal_logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.value_stm, expected.value_stm, rtol=1e-4, atol=1e-4)
    with make_evaluator(network, precision="fp32", exit_margin=0.05, num_threads=2) as evaluator:
        evaluator.evaluate(*asked)
        assert evaluator.early_exit.num_positions == len(positions.planes)
        assert 1 <= evaluator.early_exit.mean_ticks < TICKS


@pytest.mark.parametrize(("config", "margin", "named"), [
    (CONFIG, 1.5, "exit margin"), (CONFIG.with_activation("ilif"), 0.5, "several ticks"),
    (CONFIG.baseline(), 0.5, "several ticks"),
])
def test_networks_of_one_tick_refuse_it(spec, config, margin, named):
    with pytest.raises(ConfigError, match=named):
        make_evaluator(lively_network(spec, config), precision="fp32", exit_margin=margin)
