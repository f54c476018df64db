"""Dealing micro-batches to ranks."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.errors import UsageError
from chess_snn.training import TrainingSettings
from chess_snn.training.ranks import divide


@given(batch=st.integers(2, 300), micro=st.integers(2, 70), ranks=st.integers(1, 4))
def test_every_position_is_in_exactly_one_share(batch, micro, ranks):
    settings = TrainingSettings(batch_size=batch, micro_batch=micro)
    if ranks > settings.num_micro_batches:
        with pytest.raises(UsageError, match=r"training\.micro_batch"):
            divide(settings, ranks)
        return
    division = divide(settings, ranks)
    assert sum(division.counts) == settings.num_micro_batches
    shares = [range(batch)[division.positions(rank)] for rank in range(ranks)]
    assert list(itertools.chain(*shares)) == list(range(batch))
    assert all(share.start % micro == 0 and len(share) > 0 for share in shares)


@given(parts=st.integers(1, 12), ranks=st.integers(1, 5))
def test_shares_are_even(parts, ranks):
    if ranks > parts:
        return
    counts = divide(TrainingSettings(batch_size=4 * parts, micro_batch=4), ranks).counts
    assert max(counts) - min(counts) <= 1
    assert list(counts) == sorted(counts, reverse=True)
