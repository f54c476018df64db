"""The clock: time is used, and never all of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.uci.engine import LONGEST_WAVE_S, Pace
from chess_snn.uci.limits import Limits

times_ms = st.integers(0, 10**8)


@given(times_ms, st.integers(0, 10**6), st.none() | st.integers(0, 100), st.floats(0, 5))
def test_a_move_never_takes_what_is_set_aside(left_ms, increment_ms, movestogo, overhead_s):
    limits = Limits(wtime_ms=left_ms, winc_ms=increment_ms, movestogo=movestogo)
    seconds = limits.seconds(True, overhead_s)
    assert seconds >= 0
    assert seconds == 0 or seconds + overhead_s < left_ms / 1000
    assert limits.seconds(False, overhead_s) is None


@given(times_ms, st.floats(0, 5))
def test_a_fixed_time_is_undercut(movetime_ms, overhead_s):
    seconds = Limits(movetime_ms=movetime_ms).seconds(True, overhead_s)
    assert movetime_ms / 2000 <= seconds <= max(movetime_ms / 1000 - overhead_s, movetime_ms / 2000)


def test_no_time_is_no_limit():
    assert Limits(nodes=5).seconds(True, 0.1) is None
    assert Limits(infinite=True, wtime_ms=5).seconds(True, 0.1) is None


@pytest.mark.parametrize(("left_s", "increment_s", "movestogo", "moves"), [
    (60, 0, None, 300), (1, 0, None, 60), (300, 3, None, 300), (5, 0.1, None, 300),
    (60, 0, 40, 400), (10, 0, 5, 100), (0.5, 0.05, None, 300),
])
def test_a_long_game_is_not_lost_on_time(left_s, increment_s, movestogo, moves):
    """Whatever the clock; the true overhead is a tenth of the time set aside for it."""
    clock_s, used_s = left_s, 0.0
    for move in range(moves):
        togo = None if movestogo is None else movestogo - move % movestogo
        seconds = Limits(
            wtime_ms=int(1000 * clock_s), winc_ms=int(1000 * increment_s), movestogo=togo
        ).seconds(True, 0.1)
        clock_s -= seconds + 0.01
        used_s += seconds
        assert clock_s > 0
        clock_s += increment_s + (left_s if togo == 1 else 0)
    assert used_s > 0.4 * (left_s if left_s > 20 else 0)


def test_waves_shrink_until_they_are_short_and_grow_again():
    pace = Pace(64)
    seconds_a_leaf = 0.01
    for _ in range(10):
        leaves = pace.leaves(visits=10_000, wanted=100)
        pace.record(leaves, leaves * seconds_a_leaf)
    assert pace.leaves(10_000, 100) * seconds_a_leaf <= LONGEST_WAVE_S
    assert pace.reserve_s < 0.64
    for _ in range(50):
        leaves = pace.leaves(10_000, 100)
        pace.record(leaves, leaves * 1e-5)
    assert pace.leaves(10_000, 100) == 64
    assert pace.reserve_s < 0.01
    assert pace.leaves(10_000, 3) == 3
    assert pace.leaves(0, 100) == 1


def test_a_wave_that_cannot_shrink_is_one_leaf():
    pace = Pace(8)
    for _ in range(10):
        pace.record(pace.leaves(10_000, 100), 5.0)
    assert pace.leaves(10_000, 100) == 1
    assert pace.reserve_s == 5.0


def test_what_is_done_beside_a_wave_is_kept_clear_of_and_shrinks_no_wave():
    pace = Pace(8)
    pace.record(8, LONGEST_WAVE_S / 4, aside_s=1.0)
    assert pace.reserve_s == LONGEST_WAVE_S / 4 + 1.0
    assert pace.leaves(10_000, 100) == 8


def test_one_slow_wave_does_not_spoil_the_moves_to_come():
    """An engine whose reserve exceeds its time makes no wave that could correct it."""
    pace = Pace(8)
    pace.record(8, 5.0)
    for _ in range(10):
        pace.begin_search()
    assert pace.reserve_s < 0.01
