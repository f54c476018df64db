"""The model of GPUs against closed forms, and simulated groups of games against the model."""

import importlib
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import device
from benchmarks.device_model import (
    H100,
    H200,
    batch_s,
    evaluations_per_s,
    model_of,
    position_time,
    training_s,
)
from benchmarks.device_trace import NEURON_KERNELS
from benchmarks.group_queue import run_queue
from benchmarks.report import Report
from benchmarks.simulated_device import SimulatedDevice, Stage, StageRecorder
from chess_snn.errors import UsageError
from chess_snn.nets import net_config
from chess_snn.nets.gpu.static_batch import ROW_SIZES

US = 1e-6


@pytest.mark.parametrize(("size", "convolutions", "neurons", "rest"), [
    ("tiny", 0.099, 0.043, 0.097), ("small", 0.521, 0.311, 0.114),
    ("base", 2.09, 1.03, 0.167), ("large", 16.4, 4.0, 0.27),
])
def test_terms_of_a_position_are_about_those_measured_on_an_h200(
    size, convolutions, neurons, rest
):
    spent = position_time(H200, net_config(size))
    assert spent.convolutions == pytest.approx(convolutions * US, rel=0.05)
    assert spent.neurons == pytest.approx(neurons * US, rel=0.05)
    assert spent.rest == pytest.approx(rest * US, rel=0.15)
    assert spent.total == spent.convolutions + spent.neurons + spent.rest


def test_convolutions_are_two_operations_for_each_product():
    # 13 convolutions of 64 squares, 4 ticks, 9 taps, 64 by 64 channels, at 470 TFLOP/s.
    flops = 13 * 64 * 4 * 9 * 64 * 64 * 2
    assert position_time(H200, net_config("small")).convolutions == flops / 470e12


def test_a_slower_memory_slows_the_neurons_alone():
    fast, slow = (position_time(model, net_config("base")) for model in (H200, H100))
    assert slow.neurons / fast.neurons == pytest.approx(4.3 / 3.0)
    assert (slow.convolutions, slow.rest) == (fast.convolutions, fast.rest)
    assert model_of("NVIDIA H100 80GB HBM3") is H100
    assert model_of("NVIDIA H200") is H200


def test_a_batch_is_padded_and_cut_and_takes_as_long_as_its_kernels_at_least():
    config = net_config("small")
    each, largest = position_time(H200, config).total, ROW_SIZES[-1]
    assert batch_s(H200, config, largest) == pytest.approx(largest * each)
    assert batch_s(H200, config, largest - 1) == pytest.approx(largest * each)
    assert batch_s(H200, config, 1) == pytest.approx(54 * 2.5 * US)
    assert batch_s(H200, config, 2 * largest + 1) == pytest.approx(
        2 * largest * each + 54 * 2.5 * US
    )
    assert batch_s(H200, config, 0) == 0


def test_training_of_small_takes_less_where_passes_are_fused():
    assert training_s(H200, net_config("small", ticks=8)) == pytest.approx(9.9 * US, rel=0.02)
    assert training_s(H200, net_config("small")) == pytest.approx(4.25 * US, rel=0.02)


@pytest.mark.parametrize(("host", "device_", "groups", "cores", "rate"), [
    (3.0, 1.0, 1, 16, 1 / 4), (3.0, 1.0, 2, 16, 2 / 4), (3.0, 1.0, 4, 16, 1.0),
    (3.0, 1.0, 8, 16, 1.0), (3.0, 1.0, 4, 2, 2 / 3), (0.0, 2.0, 1, 1, 1 / 2),
])
def test_groups_cores_and_the_device_bound_the_rate(host, device_, groups, cores, rate):
    assert evaluations_per_s(host, device_, groups, cores) == pytest.approx(rate)


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.integers(1, 9), st.integers(1, 9))
def test_the_queue_of_equal_stages_keeps_the_bounds(host, device_, groups, cores):
    found = run_queue(
        [[Stage(host, 1)] * 400] * groups, cores, num_lanes=groups,
        batch_s=lambda _: device_, latency_s=0.0,
    )
    bound = evaluations_per_s(host, device_, groups, cores)
    rate = found.num_evaluations / found.seconds
    assert rate == pytest.approx(bound, rel=0.05)
    assert found.busy_share == pytest.approx(bound * device_, rel=0.05)
    assert found.busy_share <= 1 + 1e-9


def test_batches_wait_for_a_lane_and_for_their_latency():
    def busy(num_lanes):
        stages = [[Stage(0.0, 1)] * 200] * 3
        return run_queue(stages, 16, num_lanes, lambda _: 1.0, latency_s=1.0).busy_share

    assert busy(1) == pytest.approx(1 / 2, rel=0.01)
    assert busy(2) == pytest.approx(1, rel=0.01)


def test_a_simulated_device_serves_one_batch_at_a_time_without_a_core():
    served = SimulatedDevice(lambda rows: 0.01 * rows, num_lanes=3)
    planes, actions = np.zeros((5, 3), np.uint64), np.zeros((5, 7), np.int16)
    counts, spent = np.full(5, 7, np.int32), []

    def ask():
        before = time.thread_time()
        answer = served.evaluate(planes, actions, counts)
        spent.append(time.thread_time() - before)
        assert answer.legal_logits.shape == (5, 7)
        assert answer.value_stm.shape == (5,)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.perf_counter() - begun >= 4 * 0.05
    assert served.network_seconds == pytest.approx(4 * 0.05)
    assert served.num_evaluations == 20
    assert served.seconds >= 4 * 0.05 - 1e-6
    assert served.busy_share > 0.5
    assert sum(spent) < 0.05  # of the 0.2 s of waiting
    served.forget()
    assert (served.num_evaluations, served.seconds, served.busy_share) == (0, 0.0, 0.0)


def test_a_recorder_keeps_the_processor_time_between_questions():
    recorder = StageRecorder()
    planes, actions = np.zeros((5, 3), np.uint64), np.zeros((5, 7), np.int16)
    for seconds in (0.0, 0.02):
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass
        time.sleep(0.05)
        recorder.evaluate(planes, actions, np.full(5, 7, np.int32))
    assert [stage.num_rows for stage in recorder.stages] == [5, 5]
    assert 0.02 <= recorder.stages[1].host_s < 0.05


def test_self_play_runs_on_the_simulated_device():
    report = Report("device")
    device.run(report, quick=True, simulations=[0, 2], groups=[2], cores=[1, 16])
    figures = {m.name: m for m in report.measurements}
    rows = ("1 cores: busy, modelled", "1 cores: busy, measured", "16 cores: busy, modelled")
    for name in ("policy only", "2 simulations"):
        assert figures[f"{name}, 2 groups: host, measured"].value > 0
        for row in rows:
            assert 0 < figures[f"{name}, 2 groups, {row}"].value <= 1
        assert f"{name}, 2 groups, 16 cores: busy, measured" not in figures


@pytest.mark.parametrize("option", ["groups", "cores", "simulations"])
def test_numbers_of_the_simulation_are_checked(option):
    report = Report("device")
    with pytest.raises(UsageError):
        device.run(report, quick=True, **{option: [-1]})
    assert not report.measurements


@pytest.mark.parametrize("name", ["neuron_triton_kernels", "norm_neuron_triton_kernels"])
def test_all_kernels_that_fire_count_as_neurons(name):
    pytest.importorskip("triton", reason="triton is not installed: its kernels are not looked up")
    module = importlib.import_module(f"chess_snn.nets.gpu.{name}")
    launched = {
        kernel for kernel, function in vars(module).items()
        if not kernel.startswith("_")
        and getattr(getattr(function, "fn", None), "__module__", None) == module.__name__
    }
    assert launched
    assert launched <= NEURON_KERNELS
