"""The evaluator for GPUs: its lanes, its closing, and other weights in its memory.

Here it runs on the CPU, which does everything but capture.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
import torch

from chess_snn.nets import CudaEvaluator, build_network, freeze, make_evaluator, net_config
from chess_snn.nets.gpu.cuda_evaluator import NUM_LANES
from chess_snn.nets.gpu.static_batch import StaticBatch
from chess_snn.nets.inference import InferenceNetwork
from chess_snn.nets.model.layers import INPUTS_MULTIPLE

TINY = net_config("tiny")
WAIT_S = 60.0


def frozen(spec, seed=0, config=TINY, precision="bf16", device="cpu"):
    """A network whose running statistics depend on the seed too."""
    network = build_network(spec, config, seed)
    stream = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, buffer in network.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                buffer.add_(torch.rand(buffer.shape, generator=stream) / 2)
    return freeze(network, precision, device=device)


def evaluate(evaluator, positions):
    return evaluator.evaluate(positions.planes, positions.legal_actions, positions.num_legal)


def assert_same(ours, expected):
    np.testing.assert_array_equal(ours.legal_logits, expected.legal_logits)
    np.testing.assert_array_equal(ours.value_stm, expected.value_stm)
    np.testing.assert_array_equal(ours.wdl_stm, expected.wdl_stm)


def evaluate_on_each_lane(evaluator, positions):
    """The lanes take turns."""
    return [evaluate(evaluator, positions) for _ in range(NUM_LANES)]


def batches_of(evaluator):
    """Those of all lanes, in any order."""
    lanes = [evaluator._lanes.get() for _ in range(NUM_LANES)]
    for lane in lanes:
        evaluator._lanes.put(lane)
    return {batch for lane in lanes for batch in lane._batches.values()}


CASES = {
    "fp32": (TINY, "fp32"), "bf16": (TINY, "bf16"), "baseline": (TINY.baseline(), "bf16"),
    "integer": (net_config("tiny", activation="ilif", ticks=1), "bf16"),
}


@pytest.mark.parametrize("case", CASES)
def test_new_weights_answer_as_a_fresh_evaluator_to_the_bit(spec, positions, case):
    config, precision = CASES[case]
    first = CudaEvaluator(frozen(spec, 0, config, precision))
    before = evaluate_on_each_lane(first, positions)[0]
    batches = batches_of(first)
    fresh = evaluate(CudaEvaluator(frozen(spec, 1, config, precision)), positions)
    assert (fresh.legal_logits != before.legal_logits).any()

    second = first.renewed(frozen(spec, 1, config, precision))
    for answer in evaluate_on_each_lane(second, positions):
        assert_same(answer, fresh)
    assert second.network is first.network, "the weights stay where the graphs read them"
    assert len(batches) == NUM_LANES
    assert batches_of(second) == batches, "graphs that are captured go on"
    assert_same(
        evaluate(second.renewed(frozen(spec, 0, config, precision)), positions), before
    )


def test_it_answers_as_the_evaluator_of_the_cpu(of_both_games):
    asked = of_both_games
    network = build_network(asked.spec, TINY, 5)
    with make_evaluator(network, precision="fp32") as cpu:
        expected = evaluate(cpu, asked)
    answer = evaluate(CudaEvaluator(freeze(network, "fp32")), asked)
    np.testing.assert_allclose(answer.legal_logits, expected.legal_logits, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(answer.wdl_stm, expected.wdl_stm, atol=1e-6)


@pytest.mark.parametrize("other", [
    {"config": net_config("tiny", channels=48)}, {"config": net_config("tiny", ticks=3)},
    {"config": net_config("tiny", threshold=0.75)}, {"precision": "fp32"},
])
def test_a_network_of_another_shape_gets_memory_of_its_own(spec, positions, other):
    first = CudaEvaluator(frozen(spec))
    second = first.renewed(frozen(spec, 1, **other))
    assert second.network is not first.network
    assert_same(
        evaluate(second, positions), evaluate(CudaEvaluator(frozen(spec, 1, **other)), positions)
    )


def test_packed_weights_are_not_copied(spec):
    ours, theirs = frozen(spec, 0, precision="int8"), frozen(spec, 1, precision="int8")
    assert not ours.has_shape_of(theirs)


def test_an_evaluator_whose_weights_are_gone_cannot_be_used(spec, positions):
    first = CudaEvaluator(frozen(spec, 0))
    second = first.renewed(frozen(spec, 1))
    expected = evaluate(second, positions)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="closed"):
            evaluate(first, positions)
    assert first.renewed(frozen(spec, 2)).network is not second.network
    assert_same(evaluate(second, positions), expected)
    second.close()
    second.close()
    with pytest.raises(RuntimeError, match="closed"):
        evaluate(second, positions)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_copy_that_ends_half_way_leaves_nothing_to_use(spec, positions, monkeypatch, error):
    first, whole = CudaEvaluator(frozen(spec, 0)), InferenceNetwork.load_state_dict

    def half(self, weights):
        some = dict(list(weights.items())[: len(weights) // 2])
        whole(self, some, strict=False)
        raise error

    monkeypatch.setattr(InferenceNetwork, "load_state_dict", half)
    with pytest.raises(error):
        first.renewed(frozen(spec, 1))
    with pytest.raises(RuntimeError, match="closed"):
        evaluate(first, positions)


def test_weights_wait_for_the_calls_that_use_them(spec, positions, monkeypatch):
    first = CudaEvaluator(frozen(spec, 0))
    expected = evaluate(first, positions)
    begun, may_end, whole = threading.Event(), threading.Event(), InferenceNetwork.answer

    def slow(self, *asked):
        begun.set()
        assert may_end.wait(WAIT_S)
        return whole(self, *asked)

    monkeypatch.setattr(InferenceNetwork, "answer", slow)
    with ThreadPoolExecutor(2) as threads:
        running = threads.submit(evaluate, first, positions)
        assert begun.wait(WAIT_S)
        renewing = threads.submit(first.renewed, frozen(spec, 1))
        with pytest.raises(TimeoutError):
            renewing.result(timeout=0.2)
        may_end.set()
        assert_same(running.result(WAIT_S), expected)
        renewing.result(WAIT_S)


def test_too_little_memory_is_remembered(spec, positions, monkeypatch):
    whole = InferenceNetwork.answer

    def short_of_memory(self, planes, *others):
        if len(planes) > 64:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return whole(self, planes, *others)

    expected = evaluate(CudaEvaluator(frozen(spec, 1)), positions)
    monkeypatch.setattr(InferenceNetwork, "answer", short_of_memory)
    first = CudaEvaluator(frozen(spec, 0))
    evaluate(first, positions)
    second = first.renewed(frozen(spec, 1))
    assert first._limit.most == second._limit.most == 48
    np.testing.assert_allclose(
        evaluate(second, positions).legal_logits, expected.legal_logits, atol=1e-5
    )


def test_two_launches_leave_cudnn_as_it_was_bug(spec, monkeypatch):
    """Its flags are global: the second of two threads restored those of the first for good."""
    flags, both, seen = torch.backends.cudnn, threading.Barrier(2), []
    before = flags.deterministic, flags.allow_tf32
    whole = InferenceNetwork.answer

    def answer(self, *asked):
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)  # both are in the network, if that is possible
        seen.append(flags.deterministic)
        return whole(self, *asked)

    monkeypatch.setattr(InferenceNetwork, "answer", answer)
    batches = [StaticBatch(frozen(spec), 64, 128) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda batch: batch.start(), batches))
    assert seen == [True, True]
    assert (flags.deterministic, flags.allow_tf32) == before


@pytest.mark.parametrize("case", CASES)
def test_empty_planes_change_nothing(of_both_games, monkeypatch, case):
    asked, (config, precision) = of_both_games, CASES[case]
    network = build_network(asked.spec, config, 3)
    plain = freeze(network, precision)
    monkeypatch.setitem(INPUTS_MULTIPLE, "cpu", 32)
    padded = freeze(network, precision)
    assert (plain.num_planes, padded.num_planes % 32) == (asked.spec.num_planes, 0)
    assert padded.num_planes > plain.num_planes
    with torch.inference_mode():
        ours, expected = padded(asked.tensor()), plain(asked.tensor())
    assert torch.equal(ours.policy_logits_BA, expected.policy_logits_BA)
    assert torch.equal(ours.value_logits_BV, expected.value_logits_BV)
    assert_same(evaluate(CudaEvaluator(padded), asked), evaluate(CudaEvaluator(plain), asked))


ON_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.mark.gpu
@ON_GPU
def test_graphs_read_the_new_weights(spec, positions):
    fresh = CudaEvaluator(frozen(spec, 1, device="cuda"))
    expected = evaluate(fresh, positions)
    first = CudaEvaluator(frozen(spec, 0, device="cuda"))
    evaluate_on_each_lane(first, positions)  # each lane captures
    graphs = {batch._graph for batch in batches_of(first)}
    second = first.renewed(frozen(spec, 1, device="cuda"))
    for answer in evaluate_on_each_lane(second, positions):
        assert_same(answer, expected)
    assert {batch._graph for batch in batches_of(second)} == graphs


@pytest.mark.gpu
@ON_GPU
def test_it_captures_again_after_a_capture_that_ran_out_of_memory(spec, positions, monkeypatch):
    evaluator, whole = CudaEvaluator(frozen(spec, device="cuda")), InferenceNetwork.answer
    evaluate(evaluator, positions[:10])

    def short_of_memory(self, planes, *others):
        answer = whole(self, planes, *others)
        if len(planes) > 64 and torch.cuda.is_current_stream_capturing():
            raise torch.OutOfMemoryError("CUDA out of memory")
        return answer

    monkeypatch.setattr(InferenceNetwork, "answer", short_of_memory)
    for _ in range(6):
        evaluate(evaluator, positions)
    assert evaluator._limit.most == 48


@pytest.mark.gpu
@ON_GPU
def test_streams_of_evaluators_that_are_gone_are_used_again(spec):
    streams = set()
    for seed in range(12):
        evaluator = CudaEvaluator(frozen(spec, seed, device="cuda"))
        streams |= {lane._stream.cuda_stream for lane in evaluator._take_lanes()}
        del evaluator
    assert len(streams) <= 2 * NUM_LANES
