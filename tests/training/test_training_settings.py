"""Settings of training: ranges, choices, steps of an iteration."""

import math

import pytest

from chess_snn.errors import ConfigError
from chess_snn.training import IterationPlan, TrainingSettings
from chess_snn.training.schedule import learning_rate


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batch_size", 1),
        ("presentations", 0),
        ("presentations", float("inf")),
        ("learning_rate", 0),
        ("learning_rate", float("nan")),
        ("final_learning_rate", 1.1),
        ("final_learning_rate", -0.1),
        ("warmup_steps", -1),
        ("weight_decay", -1e-9),
        ("value_weight", -1),
        ("root_value_share", 1.1),
        ("root_value_share", -0.1),
        ("plies_left_weight", -1),
        ("surprise_share", 1.5),
        ("window_growth", -0.1),
        ("window_positions", 255),
    ],
)
def test_value_out_of_range_names_its_setting(field, value):
    with pytest.raises(ConfigError, match=rf"^training\.{field} .* {value}$"):
        TrainingSettings(**{field: value})


def test_unknown_choice_names_its_setting():
    with pytest.raises(ConfigError, match=r"^training\.precision .* 'fp8'$"):
        TrainingSettings(precision="fp8")


@pytest.mark.parametrize(
    ("new_positions", "steps"), [(6400, 100), (6430, 100), (6433, 101), (10, 1), (0, 1)]
)
def test_steps_present_new_positions_as_often_as_asked(new_positions, steps):
    settings = TrainingSettings(batch_size=256, presentations=4.0)
    assert settings.num_steps(new_positions) == steps


def test_the_window_grows_from_its_first_size_by_the_formula():
    settings = TrainingSettings(window_positions=1000, window_growth=0.4)
    assert [settings.window_capacity(n) for n in (0, 999, 1000)] == [1000] * 3
    # c (1 + 0.4 (32^0.7 - 1) / 0.7), and its slope at n = c is b.
    assert settings.window_capacity(32_000) == round(1000 * (1 + 0.4 * (2**3.5 - 1) / 0.7))
    assert settings.window_capacity(1100) == pytest.approx(1000 + 0.4 * 100, abs=2)


def test_lambda_falls_on_a_straight_line():
    settings = TrainingSettings(td_lambda=0.9, final_td_lambda=0.5)
    assert [settings.td_lambda_at(progress) for progress in (0.0, 0.5, 1.0)] == pytest.approx(
        [0.9, 0.675, 0.45]
    )
    assert TrainingSettings(td_lambda=0.9).td_lambda_at(1.0) == 0.9


# The learning rate over a campaign.


SETTINGS = TrainingSettings(learning_rate=0.02, final_learning_rate=0.1, warmup_steps=4)


def test_rate_rises_on_a_straight_line_from_its_first_step():
    rates = [learning_rate(SETTINGS, step, progress=0.0) for step in range(7)]
    assert rates == pytest.approx([0.004, 0.008, 0.012, 0.016, 0.02, 0.02, 0.02])


def test_without_warm_up_the_first_step_has_the_peak():
    assert learning_rate(TrainingSettings(learning_rate=0.02, warmup_steps=0), 0, 0.0) == 0.02


@pytest.mark.parametrize(
    ("progress", "share"),
    [(0.0, 1.0), (0.25, 0.1 + 0.9 * (0.5 + math.sqrt(2) / 4)), (0.5, 0.55), (1.0, 0.1)],
)
def test_rate_decays_on_a_cosine_to_the_final_share(progress, share):
    assert learning_rate(SETTINGS, 1000, progress) == pytest.approx(0.02 * share)


def test_progress_is_the_share_of_the_campaign_done():
    plans = [IterationPlan(5, k / 4, (k + 1) / 4) for k in range(4)]
    progress = [plan.progress(step) for plan in plans for step in range(5)]
    assert progress == pytest.approx([k / 20 for k in range(20)])
    assert plans[-1].progress(5) == 1.0


def test_iterations_beyond_the_plan_keep_the_final_rate():
    plan = IterationPlan(num_steps=5, progress_first=9 / 4, progress_last=10 / 4)
    assert learning_rate(SETTINGS, 1000, plan.progress(0)) == pytest.approx(0.002)
