"""Each alarm rings when its trouble has lasted, names its figures, and is silent otherwise."""

import re

import pytest

from chess_snn.campaign.configuration.loading import config_values, flat_values
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.viewing.alarms import Alarm, find_alarms

HEALTHY = {
    "entropy_ratio": 0.92,
    "ordinary_draw_rate": 0.8,
    "draw_rate": 0.7,
    "mean_abs_value": 0.25,
    "positions": 40_000.0,
    "samples": 160_000.0,
    "steps": 625.0,
    "skipped_steps": 0.0,
    "window_positions": 100_000.0,
    "score": 0.6,
    "score_earlier": 0.7,
    "conversion_rate": 0.8,
}


def history(num_iterations, trouble=None, length=0):
    """Healthy iterations, of which the newest ``length`` have the metrics of ``trouble``."""
    return [HEALTHY] * (num_iterations - length) + [HEALTHY | (trouble or {})] * length


def only_alarm(rows) -> Alarm:
    (alarm,) = find_alarms(rows)
    return alarm


@pytest.mark.parametrize("num_iterations", [0, 1, 5, 30])
def test_a_healthy_campaign_has_none(num_iterations):
    assert find_alarms(history(num_iterations)) == []


def test_figures_that_were_not_measured_raise_none():
    assert find_alarms([{}] * 20) == []
    assert find_alarms([dict.fromkeys(HEALTHY)] * 20) == []
    for name in HEALTHY:
        rows = [{key: value for key, value in HEALTHY.items() if key != name}] * 20
        assert find_alarms(rows) == []


TROUBLES = {
    "draw collapse": ({"ordinary_draw_rate": 0.97}, 3, "97%"),
    "value stuck at the mean": ({"mean_abs_value": 0.02}, 3, "0.020"),
    "policy entropy collapsed": ({"entropy_ratio": 0.1}, 3, "10%"),
    "policy entropy not falling": ({"entropy_ratio": 0.99}, 10, "99%"),
    "newest not beating its elder": ({"score_earlier": 0.4}, 3, "0.400"),
    "won positions not converted": ({"conversion_rate": 0.25}, 3, "25%"),
    "training steps skipped": ({"skipped_steps": 2.0}, 1, "2 steps"),
    "replay starving": ({"samples": 1e6, "steps": 4000.0}, 1, "1,000,000 samples"),
}
"""Alarms by name: metrics, iterations that they must last, and what the alarm says it saw."""


@pytest.mark.parametrize("name", TROUBLES)
def test_rings_once_it_has_lasted_and_falls_silent_when_it_ends(name):
    trouble, patience, figures = TROUBLES[name]
    assert find_alarms(history(20, trouble, patience - 1)) == []
    for length in (patience, patience + 4):
        alarm = only_alarm(history(20, trouble, length))
        assert (alarm.name, alarm.since_iteration) == (name, 20 - length)
        assert figures in alarm.saw
    rows = history(20, trouble, patience + 2)
    assert find_alarms([*rows, HEALTHY]) == []
    assert find_alarms([*rows, HEALTHY, *rows[-1:] * (patience - 1)]) == []


@pytest.mark.parametrize("name", TROUBLES)
def test_iterations_that_did_not_measure_are_passed_over(name):
    trouble, patience, _ = TROUBLES[name]
    gap = {key: figure for key, figure in HEALTHY.items() if key not in trouble}
    alarm = only_alarm([HEALTHY] * 10 + [HEALTHY | trouble, gap] * patience)
    assert (alarm.name, alarm.since_iteration) == (name, 10)


@pytest.mark.parametrize(("trouble", "least"), [
    ({"conversion_rate": 0.1}, 6), ({"ordinary_draw_rate": 0.97}, 5),
])
def test_simple_wins_may_be_missed_and_games_truncated_at_the_beginning(trouble, least):
    poor = [HEALTHY | trouble] * least
    assert find_alarms(poor[:-1]) == []
    assert only_alarm(poor).since_iteration == 0


def test_a_value_near_zero_is_right_where_nobody_wins():
    drawn = {"draw_rate": 0.95, "mean_abs_value": 0.001}
    assert find_alarms([HEALTHY | drawn] * 9) == []


def test_a_hard_start_is_told_of_for_ever():
    rows = [HEALTHY | {"entropy_ratio": 0.6}, *history(12)]
    for length in (1, 13):
        alarm = only_alarm(rows[:length])
        assert (alarm.name, alarm.since_iteration) == ("hard start", 0)
        assert "60%" in alarm.saw


def test_a_falling_score_is_measured_from_its_best():
    scores = [0.5, 0.6, 0.7, 0.8, 0.8, 0.8, 0.7, 0.65, 0.6]
    rows = [HEALTHY | {"score": score} for score in scores]
    assert find_alarms(rows[:8]) == []  # mean 0.72: within the noise
    alarm = only_alarm(rows)
    assert (alarm.name, alarm.since_iteration) == ("score falling", 6)
    assert "0.650" in alarm.saw
    assert "0.800" in alarm.saw
    gaps = [row for scored in rows for row in ({}, scored)]
    assert only_alarm(gaps).since_iteration == 13  # the seventh that was measured


@pytest.mark.parametrize(("figures", "saw"), [
    ({"window_positions": 1000.0}, "3.9 batches"),
    ({"positions": 100.0, "samples": 512.0, "steps": 2.0}, "100 new positions"),
])
def test_the_replay_may_be_short_of_several_things(figures, saw):
    assert saw in only_alarm([HEALTHY, HEALTHY | figures]).saw


def test_advice_names_settings_that_exist():
    known = set(flat_values(config_values(CampaignConfig())))
    alarms = [only_alarm(history(20, trouble, 12)) for trouble, _, _ in TROUBLES.values()]
    alarms.append(only_alarm([HEALTHY | {"entropy_ratio": 0.6}]))
    alarms.append(only_alarm([HEALTHY | {"score": s} for s in (0.9,) * 3 + (0.2,) * 3]))
    for alarm in alarms:
        names = re.findall(r"\b[a-z_]+\.[a-z_]+", alarm.advice)
        assert names
        assert set(names) <= known
        assert str(alarm).startswith(f"{alarm.name} since iteration {alarm.since_iteration}: ")
        assert "\n" not in str(alarm)
