"""Settings of training: ranges, choices, steps of an iteration."""

import pytest

from chess_snn.errors import ConfigError
from chess_snn.training import TrainingSettings


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
        ("clip_norm", 0),
        ("advantage_clip", 0),
        ("entropy_bonus", -0.1),
        ("value_weight", -1),
        ("root_value_share", 1.1),
        ("root_value_share", -0.1),
        ("plies_left_weight", -1),
        ("surprise_share", 1.5),
        ("surprise_cap", 0.5),
        ("window_growth", -0.1),
        ("window_exponent", 0),
        ("window_positions", 255),
    ],
)
def test_value_out_of_range_names_its_setting(field, value):
    with pytest.raises(ConfigError, match=rf"^training\.{field} .* {value}$"):
        TrainingSettings(**{field: value})


@pytest.mark.parametrize(("field", "value"), [("policy_loss", "ppo"), ("precision", "fp8")])
def test_unknown_choice_names_its_setting(field, value):
    with pytest.raises(ConfigError, match=rf"^training\.{field} .* '{value}'$"):
        TrainingSettings(**{field: value})


@pytest.mark.parametrize(
    ("new_positions", "steps"), [(6400, 100), (6430, 100), (6433, 101), (10, 1), (0, 1)]
)
def test_steps_present_new_positions_as_often_as_asked(new_positions, steps):
    settings = TrainingSettings(batch_size=256, presentations=4.0)
    assert settings.num_steps(new_positions) == steps


def test_the_window_grows_from_its_first_size_by_the_formula():
    settings = TrainingSettings(window_positions=1000, window_growth=0.4, window_exponent=0.5)
    assert [settings.window_capacity(n) for n in (0, 999, 1000)] == [1000] * 3
    # c (1 + 0.4 (4^0.5 - 1) / 0.5), and its slope at n = c is b.
    assert settings.window_capacity(4000) == 1800
    assert settings.window_capacity(1100) == pytest.approx(1000 + 0.4 * 100, abs=2)


def test_a_window_without_growth_keeps_its_size():
    settings = TrainingSettings(window_positions=1000, window_growth=0.0)
    assert settings.window_capacity(10**9) == 1000


def test_lambda_falls_on_a_straight_line():
    settings = TrainingSettings(td_lambda=0.9, final_td_lambda=0.5)
    assert [settings.td_lambda_at(progress) for progress in (0.0, 0.5, 1.0)] == pytest.approx(
        [0.9, 0.675, 0.45]
    )
    assert TrainingSettings(td_lambda=0.9).td_lambda_at(1.0) == 0.9
