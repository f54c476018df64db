"""Loss curves by optimiser step: at most 100 points, means over all steps, whoever listens."""

import pytest

from chess_snn.training import IterationPlan, thin
from chess_snn.training.step import FIGURES


def steps(count, first=1):
    return [
        dict.fromkeys(FIGURES, float(step)) | {"step": first + step, "learning_rate": 0.01 * step}
        for step in range(count)
    ]


@pytest.mark.parametrize(("count", "points"), [(0, 0), (1, 1), (100, 100), (101, 51), (1234, 95)])
def test_a_curve_has_at_most_100_points_and_ends_with_the_last_step(count, points):
    curve = thin(steps(count))
    assert len(curve) == points
    assert [point["step"] for point in curve] == sorted({point["step"] for point in curve})
    assert not curve or curve[-1]["step"] == count


def test_a_point_is_the_mean_over_its_steps_in_6_digits():
    curve = thin(steps(300, first=41))
    assert [point["step"] for point in curve[:2]] == [43, 46]
    assert curve[1]["total"] == curve[1]["policy"] == 4.0
    assert curve[1]["learning_rate"] == 0.04
    third = [{**steps(1)[0], "total": 1.0}, {**steps(1)[0], "total": 0.0}] * 100
    assert thin([*third, steps(1)[0]])[0]["total"] == 0.666667


def test_training_reports_its_curve_and_each_step_to_the_listener(new_trainer, searched_window):
    trainer, heard = new_trainer(), []
    trainer.steps_done = 10
    report = trainer.run(searched_window, IterationPlan(5, 0.0, 1.0), on_step=heard.append)
    assert [point["step"] for point in report.step_losses] == [11, 12, 13, 14, 15]
    assert [step["step"] for step in heard] == [11, 12, 13, 14, 15]
    assert report.step_losses[2]["policy"] == pytest.approx(heard[2]["policy"], rel=1e-5)
    assert heard[0]["learning_rate"] > heard[-1]["learning_rate"] == report.learning_rate
    mean = sum(step["total"] for step in heard) / 5
    assert report.total_loss == pytest.approx(mean)
    weighted = report.policy_loss + report.value_loss + 0.1 * report.plies_left_loss
    assert report.total_loss == pytest.approx(weighted, rel=1e-5)
