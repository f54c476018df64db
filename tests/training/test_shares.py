"""Dealing micro-batches to ranks."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.errors import UsageError
from chess_snn.training import TrainingSettings
from chess_snn.training.shares import PaceGauge, divide

paces_of = st.lists(st.floats(0.1, 10.0), min_size=1, max_size=4)


@given(batch=st.integers(2, 300), micro=st.integers(2, 70), paces=paces_of)
def test_every_position_is_in_exactly_one_share(batch, micro, paces):
    settings = TrainingSettings(batch_size=batch, micro_batch=micro)
    if len(paces) > settings.num_micro_batches:
        with pytest.raises(UsageError, match=r"set training\.micro_batch to"):
            divide(settings, paces)
        return
    division = divide(settings, paces)
    assert sum(division.counts) == settings.num_micro_batches
    shares = [range(batch)[division.positions(rank)] for rank in range(len(paces))]
    assert list(itertools.chain(*shares)) == list(range(batch))
    assert all(share.start % micro == 0 and len(share) > 0 for share in shares)


@given(parts=st.integers(1, 12), ranks=st.integers(1, 5))
def test_equal_paces_share_evenly(parts, ranks):
    if ranks > parts:
        return
    counts = divide(TrainingSettings(batch_size=4 * parts, micro_batch=4), [3.0] * ranks).counts
    assert max(counts) - min(counts) <= 1
    assert list(counts) == sorted(counts, reverse=True)


@given(parts=st.integers(1, 7), paces=st.lists(st.floats(0.1, 10.0), min_size=1, max_size=3))
def test_no_other_division_is_done_earlier(parts, paces):
    if len(paces) > parts:
        return
    counts = divide(TrainingSettings(batch_size=4 * parts, micro_batch=4), paces).counts

    def seconds(dealt):
        return max(count / pace for count, pace in zip(dealt, paces, strict=True))

    every = itertools.product(range(1, parts + 1), repeat=len(paces))
    best = min(seconds(dealt) for dealt in every if sum(dealt) == parts)
    assert seconds(counts) == pytest.approx(best)


def test_a_gauge_leaves_out_the_first_step_and_takes_means():
    gauge = PaceGauge(2)
    gauge.add([100.0, 1.0], (2, 2))
    assert gauge.paces() is None
    gauge.add([1.0, 3.0], (2, 2))
    assert gauge.paces() is None
    gauge.add([1.0, 1.0], (2, 2))
    assert gauge.paces() == [2.0, 1.0]
