"""The lines that training prints: steps, mean losses and pace, about once a second."""

import re

from chess_snn.training import StepLines


def figures(total):
    return {"total": total, "policy": total - 1, "value": 0.5}


def test_lines_are_thinned_and_tell_the_mean_since_the_line_before(monkeypatch):
    now_s, said = [0.0], []
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    lines = StepLines(said.append, batch_size=32)
    for step in range(1, 8):
        lines.on_step(figures(float(step)))
        lines.on_progress(step, 7)
        now_s[0] += 0.4
    assert said == [
        "step 1/7  loss 1.00 (policy 0.00, value 0.50)",
        "step 4/7  loss 3.00 (policy 2.00, value 0.50)  80 samples/s",
        "step 7/7  loss 6.00 (policy 5.00, value 0.50)  80 samples/s",
    ]


def test_steps_whose_losses_have_not_come_from_the_device_yet_are_counted():
    said = []
    StepLines(said.append, batch_size=32).on_progress(3, 9)
    assert said == ["step 3/9"]
    assert re.fullmatch(r"step (\d+)/(\d+)(?:  .*)?", said[0])
