"""Curves of one line: the newest values, the least at the bottom, the greatest on top."""

import math

from chess_snn.cli.dashboard import BLOCKS, PLAIN, sparkline


def test_levels_follow_the_values():
    assert sparkline(range(8), 60) == BLOCKS
    assert sparkline([0.0, 7.0], 60, levels=PLAIN) == "_#"
    assert sparkline([7.0, 0.0, 3.5], 60) == "█▁▅"


def test_only_the_newest_fit():
    assert sparkline([100.0, *range(8)], 8) == BLOCKS


def test_a_fixed_scale_is_kept_and_never_left():
    assert sparkline([0.0, 0.5, 1.0], 60, low=0.0, high=1.0) == "▁▅█"
    assert sparkline([-1.0, 2.0], 60, low=0.0, high=1.0) == "▁█"


def test_equal_values_are_a_level_line():
    assert sparkline([3.0] * 4, 60) == "▄▄▄▄"


def test_nothing_measured_is_nothing_drawn():
    assert sparkline([], 60) == ""
    assert sparkline([math.nan, math.inf], 60) == ""
    assert sparkline([math.nan, 1.0, 2.0], 60) == "▁█"
