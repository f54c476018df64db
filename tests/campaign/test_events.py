"""What events say, and which of them a log shows."""

from dataclasses import replace

import pytest
import small_campaigns as made

from chess_snn.campaign.viewing import lines
from chess_snn.campaign.viewing.alarms import Alarm
from chess_snn.campaign.viewing.events import (
    AlarmRaised,
    IterationFinished,
    Message,
    StageProgress,
    WorkerProgress,
    WorkersProgress,
)
from chess_snn.campaign.viewing.lines import MOST_WORKERS, NowAndThen, event_lines

STAGE = StageProgress(3, "self-play", "games", 120, 400, per_s=3.0)
WORKER = WorkerProgress("box-a/cpu-0", "the processor of box-a", "", 10, 1.0, 0.1, 1.0, 2**30, None)


@pytest.mark.parametrize(("stage", "text"), [
    (STAGE, "iteration 3 self-play: 120 of 400 games, 3.0/s, 93 s left"),
    (replace(STAGE, per_s=0.0), "iteration 3 self-play: 120 of 400 games"),
    (replace(STAGE, total=0), "iteration 3 self-play: 120 games, 3.0/s"),
    (replace(STAGE, unit=""), "iteration 3 self-play"),
    (replace(STAGE, done=400, has_ended=True), "iteration 3 self-play: 400 of 400 games, 3.0/s"),
])
def test_a_stage_says_how_far_it_is_and_how_long_it_takes(stage, text):
    assert event_lines(stage) == [text]


def test_each_event_has_its_lines(tmp_path):
    folder = made.make_campaign(tmp_path / "campaign")
    receipt = made.finish(folder, 0)
    assert event_lines(Message("a worker died")) == ["a worker died"]
    assert event_lines(AlarmRaised(Alarm("draw collapse", 3, "saw", "advice")))[0].startswith(
        "ALARM draw collapse since iteration 3"
    )
    (line,) = event_lines(IterationFinished(receipt))
    assert line.startswith("iteration 0 (25% of the campaign): 200 games")


@pytest.mark.parametrize(("workers", "num_lines"), [
    (0, 0), (1, 2), (MOST_WORKERS, 1 + MOST_WORKERS), (MOST_WORKERS + 1, 1),
])
def test_many_workers_are_one_line(workers, num_lines):
    assert len(event_lines(WorkersProgress((WORKER,) * workers))) == num_lines


def test_a_log_shows_progress_now_and_then_and_everything_else_always(monkeypatch):
    now_s = 1000.0
    monkeypatch.setattr(lines.time, "monotonic", lambda: now_s)
    is_due, workers = NowAndThen(), WorkersProgress((WORKER,))
    shown: dict[str, list[float]] = {"stage": [], "workers": [], "message": []}
    for second in range(121):
        now_s = 1000.0 + second
        for name, event in (("stage", STAGE), ("workers", workers), ("message", Message(""))):
            if is_due(event):
                shown[name].append(second)
    assert shown["stage"] == list(range(10, 121, 10))
    assert shown["workers"] == [60, 120]
    assert len(shown["message"]) == 121
    assert is_due(replace(STAGE, has_ended=True))
    assert not is_due(STAGE), "a stage of that name begins"
