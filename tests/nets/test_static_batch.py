"""Evaluators on devices of fixed batches and of too little memory."""

import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.nets import CudaEvaluator, build_network, freeze, make_evaluator, net_config
from chess_snn.nets.evaluator import LEAST_ROWS, RowLimit
from chess_snn.nets.gpu.static_batch import (
    COLUMN_SIZES,
    ROW_SIZES,
    StaticBatch,
    column_bucket,
    row_bucket,
)
from chess_snn.nets.inference import InferenceNetwork


@pytest.fixture(scope="module")
def network(spec):
    return build_network(spec, net_config("tiny", target_readout=True), 3)


def answers_of(batch, positions, num_columns):
    batch.fill(positions.planes, positions.legal_actions[:, :num_columns], positions.num_legal)
    batch.start()
    answer = batch.read(len(positions.planes), num_columns)
    return answer.legal_logits.copy(), answer.value_stm.copy(), answer.wdl_stm.copy()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_static_batch_says_what_the_evaluator_says(of_both_games, precision):
    positions = of_both_games
    network = build_network(positions.spec, net_config("tiny"), 3)
    with make_evaluator(network, precision=precision) as evaluator:
        expected = evaluator.evaluate(
            positions.planes, positions.legal_actions, positions.num_legal
        )
    num_columns = int(positions.num_legal.max())
    for bucket in ((96, num_columns), (128, positions.spec.max_legal)):
        batch = StaticBatch(freeze(network, precision), *bucket)
        logits, values, wdl = answers_of(batch, positions, num_columns)
        np.testing.assert_allclose(logits, expected.legal_logits[:, :num_columns], atol=1e-5)
        np.testing.assert_allclose(values, expected.value_stm, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(wdl, expected.wdl_stm, atol=1e-6)


def test_padding_does_not_influence_real_rows(positions, network):
    num_columns = int(positions.num_legal.max())
    fresh = StaticBatch(freeze(network, "fp32"), 128, num_columns)
    used = StaticBatch(freeze(network, "fp32"), 128, num_columns)
    answers_of(used, positions, num_columns)  # its rows stay behind as padding
    for rows in (slice(0, 1), slice(7, 40), slice(0, 96)):
        few = positions[rows]
        for ours, expected in zip(
            answers_of(used, few, num_columns), answers_of(fresh, few, num_columns), strict=True
        ):
            np.testing.assert_array_equal(ours, expected)


@given(st.integers(1, ROW_SIZES[-1]))
def test_a_bucket_is_the_smallest_that_fits(num_rows):
    bucket = row_bucket(num_rows)
    assert bucket >= num_rows
    assert all(size < num_rows for size in ROW_SIZES if size < bucket)
    assert num_rows < ROW_SIZES[0] or (bucket - num_rows) / bucket <= 1 / 2


@given(st.integers(0, 218), st.integers(1, 300))
def test_columns_hold_every_legal_action(num_columns, max_legal):
    num_columns = min(num_columns, max_legal)
    bucket = column_bucket(num_columns, max_legal)
    assert num_columns <= bucket <= max_legal
    assert bucket in (*COLUMN_SIZES, max_legal)


# Calls of the network that are too large for the device's memory.


def small_device(room, seen):
    """Answers parts of at most ``room`` rows, and notes which."""

    def answer(rows):
        if rows.stop - rows.start > room:
            raise torch.OutOfMemoryError("too many")
        seen.extend(range(rows.start, rows.stop))

    return answer


@given(st.integers(0, 20_000), st.integers(1, 5_000), st.integers(LEAST_ROWS, 5_000))
def test_every_row_is_answered_once_whatever_the_device_holds(num_rows, most, room):
    limit, seen = RowLimit(most), []
    limit.answer(slice(0, num_rows), small_device(room, seen))
    assert seen == list(range(num_rows))
    assert (limit.most == most) == (min(most, num_rows) <= room)
    assert limit.most == most or limit.most <= room


def test_what_was_too_large_is_not_tried_again():
    limit, tried = RowLimit(4096), []

    def answer(rows):
        tried.append(rows.stop - rows.start)
        if tried[-1] > 1000:
            raise torch.OutOfMemoryError("too many")

    limit.answer(slice(0, 4096), answer)
    assert tried[:3] == [4096, 2048, 1024]
    assert set(tried[3:]) == {512}
    tried.clear()
    limit.answer(slice(0, 4096), answer)
    assert tried == [512] * 8


def test_a_call_that_failed_holds_no_memory_while_others_follow_bug():
    """The traceback of the error did, so that smaller calls found no more memory."""
    limit, activations, alive = RowLimit(4096), [], []

    def answer(rows):
        alive.append(sum(activation() is not None for activation in activations))
        held = torch.empty(rows.stop - rows.start)
        activations.append(weakref.ref(held))
        if len(held) > 512:
            raise torch.OutOfMemoryError("too many")

    limit.answer(slice(0, 4096), answer)
    assert len(alive) == 3 + 8
    assert set(alive) == {0}


def test_a_device_that_holds_next_to_nothing_is_given_up():
    limit = RowLimit(4096)
    with pytest.raises(torch.OutOfMemoryError):
        limit.answer(slice(0, 4096), small_device(LEAST_ROWS - 1, []))
    assert limit.most == LEAST_ROWS


@pytest.mark.fault(13)
def test_an_evaluator_answers_alike_in_smaller_calls(spec, positions, monkeypatch):
    frozen = freeze(build_network(spec, net_config("tiny"), 0), "bf16")
    whole_answer, sizes = InferenceNetwork.answer, []

    def short_of_memory(self, planes, *others):
        sizes.append(len(planes))
        if len(planes) > 64:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return whole_answer(self, planes, *others)

    def evaluate():
        asked = positions.planes, positions.legal_actions, positions.num_legal
        return CudaEvaluator(frozen).evaluate(*asked)

    expected = evaluate()
    monkeypatch.setattr(InferenceNetwork, "answer", short_of_memory)
    answer = evaluate()
    assert sizes == [128, 64, 64]
    assert (answer.legal_logits == expected.legal_logits).all()
    assert (answer.wdl_stm == expected.wdl_stm).all()
