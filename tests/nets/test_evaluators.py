"""The evaluator: its answers against the network's, rows that do not see each other, threads."""

import dataclasses
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from chess_snn.cores import num_cores
from chess_snn.devices import find_device
from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.nets import (
    CudaEvaluator,
    build_network,
    freeze,
    keep_freed_memory,
    make_evaluator,
    net_config,
)
from chess_snn.nets.evaluator import BusyClock
from chess_snn.nets.model.values import read_value

TINY = net_config("tiny")
NETS = {
    "T2": TINY, "T1": net_config("tiny", ticks=1, target_readout=True), "baseline": TINY.baseline(),
}


def evaluate(evaluator, positions):
    return evaluator.evaluate(positions.planes, positions.legal_actions, positions.num_legal)


def assert_same(ours, expected, rows=slice(None)):
    """The answers are those of ``rows`` of what is expected."""
    np.testing.assert_array_equal(ours.legal_logits, expected.legal_logits[rows])
    np.testing.assert_array_equal(ours.value_stm, expected.value_stm[rows])
    np.testing.assert_array_equal(ours.wdl_stm, expected.wdl_stm[rows])


@pytest.fixture(scope="module")
def network(spec):
    return build_network(spec, TINY, 0)


CASES = [
    (net, precision) for net in NETS for precision in ("fp32", "bf16", "int8")
    if (net, precision) != ("baseline", "int8")
]


@pytest.mark.parametrize(("net", "precision"), CASES)
def test_answers_are_the_networks(of_both_games, net, precision):
    asked = of_both_games
    network = build_network(asked.spec, NETS[net], 5)
    with torch.inference_mode():
        output = freeze(network, precision)(asked.tensor())
        wdl, values = read_value(asked.spec, output.value_logits_BV)
    with make_evaluator(network, precision=precision, num_threads=2, chunk_size=32) as evaluator:
        answer = evaluate(evaluator, asked)
    expected = asked.legal_logits(output.policy_logits_BA).numpy()
    np.testing.assert_allclose(answer.legal_logits, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(answer.wdl_stm, wdl, rtol=1e-6)
    np.testing.assert_allclose(answer.value_stm, values, rtol=1e-4, atol=1e-6)
    dtypes = {column.dtype for column in (answer.legal_logits, answer.wdl_stm, answer.value_stm)}
    assert dtypes == {np.dtype(np.float32)}


@pytest.mark.parametrize(("net", "precision"), CASES)
def test_a_rows_answer_is_the_same_to_the_bit_in_every_company(of_both_games, net, precision):
    asked = of_both_games
    network = build_network(asked.spec, NETS[net], 0)
    with (
        make_evaluator(network, precision=precision, chunk_size=64) as one,
        make_evaluator(network, precision=precision, chunk_size=13, num_threads=2) as other,
    ):
        whole = evaluate(one, asked)
        assert_same(evaluate(other, asked), whole)
        for rows in (slice(0, 1), slice(5, 7), slice(3, 20), slice(31, 96), [40, 2, 40]):
            assert_same(evaluate(one, asked[rows]), whole, rows)
        among_others = dataclasses.replace(asked, planes=~asked.planes)
        among_others.planes[17] = asked.planes[17]
        answer = evaluate(one, among_others)
        np.testing.assert_array_equal(answer.legal_logits[17], whole.legal_logits[17])
        np.testing.assert_array_equal(answer.value_stm[17], whole.value_stm[17])
        np.testing.assert_array_equal(answer.wdl_stm[17], whole.wdl_stm[17])


def test_what_stands_behind_a_list_does_not_matter(positions, network):
    behind = np.arange(positions.legal_actions.shape[1]) >= positions.num_legal[:, None]
    answers = []
    with make_evaluator(network) as evaluator:
        for rubbish in (0, -1, -32768, 32767):
            lists = np.where(behind, np.int16(rubbish), positions.legal_actions)
            answers.append(evaluate(evaluator, dataclasses.replace(positions, legal_actions=lists)))
    for answer in answers:
        assert (answer.legal_logits[behind] == -np.inf).all()
        assert np.isfinite(answer.legal_logits[~behind]).all()
        assert_same(answer, answers[0])


def test_no_rows_and_rows_without_actions(of_both_games):
    asked = of_both_games
    ended = dataclasses.replace(asked, num_legal=np.zeros_like(asked.num_legal))
    with make_evaluator(build_network(asked.spec, TINY, 0)) as evaluator:
        empty, answer, whole = (evaluate(evaluator, each) for each in (asked[:0], ended, asked))
    assert empty.legal_logits.shape == (0, asked.legal_actions.shape[1])
    assert empty.wdl_stm.shape == (0, whole.wdl_stm.shape[1])
    assert (answer.legal_logits == -np.inf).all()
    assert np.isfinite(answer.wdl_stm).all()
    np.testing.assert_array_equal(answer.value_stm, whole.value_stm)


def test_time_in_the_network_adds_up(positions, network):
    with make_evaluator(network, precision="fp32") as evaluator:
        evaluate(evaluator, positions)
        seconds = evaluator.network_seconds
        evaluate(evaluator, positions[:10])
        assert evaluator.network_seconds > seconds > 0
        assert (evaluator.network.precision, evaluator.network.device.type) == ("fp32", "cpu")
        assert evaluator.network.neurons.kind == "compiled"


def test_calls_from_several_threads_do_not_mix(positions, network):
    with make_evaluator(network, num_threads=2, chunk_size=16) as evaluator:
        whole = evaluate(evaluator, positions)
        parts = [slice(lo, lo + 24) for lo in range(0, 96, 24)] * 3
        with ThreadPoolExecutor(4) as callers:
            answers = list(callers.map(lambda rows: evaluate(evaluator, positions[rows]), parts))
    for rows, answer in zip(parts, answers, strict=True):
        np.testing.assert_array_equal(answer.legal_logits, whole.legal_logits[rows])


@pytest.mark.parametrize(
    ("name", "ticks", "chunk_size"), [("chess", 1, 256), ("chess", 4, 64), ("2048", 1, 1024)]
)
def test_chunks_have_as_many_squares_and_ticks_everywhere(name, ticks, chunk_size):
    network = build_network(get_game(name).spec, net_config("tiny", ticks=ticks), 0)
    with make_evaluator(network, num_threads=None) as evaluator:
        assert (evaluator._chunk_size, evaluator.num_threads) == (chunk_size, num_cores())


def test_torch_threads_of_others_are_left_alone(positions, network):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with make_evaluator(network, num_threads=2) as evaluator:
            evaluate(evaluator, positions[:8])
            inside = list(evaluator._threads.map(lambda _: torch.get_num_threads(), range(4)))
            with ThreadPoolExecutor(1) as later:
                assert later.submit(torch.get_num_threads).result() == 2
        assert torch.get_num_threads() == 2
        assert inside == [1] * 4
    finally:
        torch.set_num_threads(before)


def test_auto_is_the_cpu_without_a_gpu_and_for_8_bits(network, monkeypatch):
    with make_evaluator(network, device="auto") as evaluator:
        assert isinstance(evaluator, CudaEvaluator) == torch.cuda.is_available()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert find_device("auto") == torch.device("cuda:0")
    with make_evaluator(network, device="auto", precision="int8") as evaluator:
        assert not isinstance(evaluator, CudaEvaluator)


@pytest.mark.parametrize(("name", "value"), [
    ("num_threads", 0), ("chunk_size", 0), ("precision", "fp8"), ("device", "abacus"),
    ("device", "cuda:99"), ("device", "meta"),
])
def test_bad_options_are_refused(network, name, value):
    with pytest.raises(ConfigError, match=name):
        make_evaluator(network, **{name: value})


ON_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.mark.gpu
@ON_GPU
@pytest.mark.parametrize("config", [TINY, TINY.baseline()], ids=["spiking", "baseline"])
def test_a_gpu_says_nearly_what_the_cpu_says(spec, positions, config):
    network = build_network(spec, config, 0)
    with make_evaluator(network, precision="fp32") as cpu:
        expected = evaluate(cpu, positions)
    with make_evaluator(network, precision="fp32", device="cuda") as gpu:
        answer = evaluate(gpu, positions)
        assert gpu.network.neurons.kind == ("fused" if config.is_spiking else "reference")
    assert (np.isinf(answer.legal_logits) == np.isinf(expected.legal_logits)).all()
    distance = np.abs(answer.wdl_stm - expected.wdl_stm).sum(1) / 2
    assert np.mean(distance) < 0.02


@pytest.mark.gpu
@ON_GPU
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("net", NETS)
def test_captured_and_eager_agree_to_the_bit(spec, positions, net, precision):
    frozen = freeze(build_network(spec, NETS[net], 0), precision, device="cuda")
    captured, eager = CudaEvaluator(frozen), CudaEvaluator(frozen, captured=False)
    for rows in (slice(0, 96), slice(0, 1), slice(3, 50), slice(0, 96)):
        assert_same(evaluate(captured, positions[rows]), evaluate(eager, positions[rows]))


@pytest.mark.gpu
@ON_GPU
def test_callers_of_a_gpu_do_not_mix(positions, network):
    with make_evaluator(network, device="cuda") as evaluator:
        parts = [slice(lo, lo + 24) for lo in range(0, 96, 24)]
        alone = [evaluate(evaluator, positions[rows]) for rows in parts]
        with ThreadPoolExecutor(8) as callers:
            answers = list(callers.map(lambda k: evaluate(evaluator, positions[parts[k % 4]]),
                                       range(64)))
        assert evaluator.network_seconds > 0
    for k, answer in enumerate(answers):
        assert_same(answer, alone[k % 4])


def test_time_in_use_by_several_counts_once():
    clock, barrier = BusyClock(), threading.Barrier(3)

    def use():
        with clock:
            barrier.wait()
            time.sleep(0.05)

    threads = [threading.Thread(target=use) for _ in range(3)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.05 <= clock.seconds <= time.perf_counter() - start


def test_it_runs_in_use_and_stops_even_when_a_user_fails():
    clock = BusyClock()

    def use_and_fail():
        before = clock.seconds
        time.sleep(0.01)
        assert clock.seconds >= before + 0.01
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), clock:
        use_and_fail()
    stopped = clock.seconds
    time.sleep(0.01)
    assert clock.seconds == stopped


# Memory that a network frees stays in the process.


resource = pytest.importorskip("resource", reason="page faults are counted on Unix only")


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")
def test_evaluations_cause_next_to_no_page_faults() -> None:
    if not keep_freed_memory():
        pytest.skip("this C library has no mallopt")
    game = get_game("chess")
    batch = game.allocate(64)
    planes = game.planes(batch.state)
    network = build_network(game.spec, net_config("small"), seed=0)
    with make_evaluator(network) as evaluator:
        faults = []
        for _ in range(8):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            evaluator.evaluate(planes, batch.legal_actions, batch.num_legal)
            faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    # Threads reach their highest mark one after the other. One 64-position activation of `small`
    # alone is 512 pages.
    assert min(faults[3:]) < 512
