"""The benchmark of the network times neurons without changing what they answer."""

import pytest
import torch

from benchmarks import net
from benchmarks.random_data import random_positions
from chess_snn.nets import build_network, make_evaluator, net_config


def test_timed_neurons_change_no_answer():
    positions = random_positions(12)
    network = build_network(net.get_game("chess").spec, net_config("tiny"), seed=0)
    with make_evaluator(network) as evaluator:
        expected = positions.ask(evaluator)
        evaluator.network.neurons = net.TimedNeurons(evaluator.network.neurons)
        timed = positions.ask(evaluator)
        assert 0 < evaluator.network.neurons.seconds < evaluator.network_seconds
    assert (timed.legal_logits == expected.legal_logits).all()
    assert (timed.wdl_stm == expected.wdl_stm).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_peak_is_a_rate(dtype):
    assert net.matrix_flops_per_s(dtype, size=64) > 0
