"""Batches of fixed size, on the CPU: what is captured on a GPU does the same work."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.nets import build_network, freeze, make_evaluator, net_config
from chess_snn.nets.cuda_evaluator import (
    COLUMN_SIZES,
    ROW_SIZES,
    StaticBatch,
    column_bucket,
    row_bucket,
)


@pytest.fixture(scope="module")
def network(spec):
    return build_network(spec, net_config("tiny"), 3)


def answers_of(batch, positions, num_columns):
    batch.fill(positions.planes, positions.legal_actions[:, :num_columns], positions.num_legal)
    batch.start()
    answer = batch.read(len(positions.planes), num_columns)
    return answer.legal_logits.copy(), answer.value_stm.copy(), answer.wdl_stm.copy()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_static_batch_says_what_the_evaluator_says(positions, network, precision):
    with make_evaluator(network, precision=precision) as evaluator:
        expected = evaluator.evaluate(
            positions.planes, positions.legal_actions, positions.num_legal
        )
    num_columns = int(positions.num_legal.max())
    for bucket in ((96, num_columns), (128, num_columns + 9)):
        batch = StaticBatch(freeze(network, precision), *bucket)
        logits, values, wdl = answers_of(batch, positions, num_columns)
        np.testing.assert_allclose(logits, expected.legal_logits[:, :num_columns], atol=1e-5)
        np.testing.assert_allclose(values, expected.value_stm, atol=1e-6)
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
