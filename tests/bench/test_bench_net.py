"""The benchmark of the network measures what it says; a test does not hold its bars."""

import pytest
import torch

from benchmarks import net
from benchmarks.random_data import random_positions
from benchmarks.report import Report
from benchmarks.spiking_peers import installed_peers
from chess_snn.nets import build_network, make_evaluator, net_config


@pytest.fixture(scope="module")
def report():
    report = Report("net")
    net.run(report, quick=True)
    return report


def test_rates_of_every_precision_and_shares_of_the_peak(report):
    figures = {m.name: m for m in report.measurements}
    assert len(figures) == len(report.measurements)
    assert all(m.value > 0 for m in report.measurements)
    for size in ("tiny", "small"):
        for precision in ("int8", "bf16", "fp32"):
            assert f"{size}: {precision}, one core, batch 1" in figures
            peaked = "bf16" if precision == "int8" else precision
            assert f"{size}: {precision}, one core, of the peak of {peaked}" in figures


@pytest.mark.parametrize("size", ["tiny", "small"])
def test_the_slowdown_is_over_the_baseline_of_the_same_run(report, size):
    figures = {m.name: m.value for m in report.measurements}
    baseline = figures[f"{size}: ReLU baseline"]
    for ticks in (2, 4, 8):
        slowdown = figures[f"{size}: T = {ticks}, slowdown"]
        assert slowdown == pytest.approx(baseline / figures[f"{size}: T = {ticks}"])
        assert figures[f"{size}: T = {ticks}, slowdown a tick"] * ticks == pytest.approx(slowdown)
        assert 0 < figures[f"{size}: T = {ticks}, time in the neurons"] < 1


def test_each_peer_is_a_barred_ratio_or_a_note(report):
    bars = {m.name: m.at_least for m in report.measurements if m.passes is not None}
    if "SpikingJelly" in installed_peers():
        assert bars == {
            "small: ours in int8 over SpikingJelly in fp32": 4.0,
            "small: ours in int8 over SpikingJelly in bf16": 2.5,
        }
    for name in ("SpikingJelly", "snnTorch"):
        is_missing = any(note.startswith(f"{name} is NOT installed") for note in report.notes)
        assert is_missing == (name not in installed_peers())


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
