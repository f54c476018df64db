"""A running campaign reports its workers and its writer, and says whom to believe."""

import json
import os
import socket
import time
from dataclasses import asdict, replace

import pytest
import small_campaigns as made

from chess_snn.campaign import campaign_lock
from chess_snn.campaign.store.plans import campaign_length
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
from chess_snn.campaign.viewing.live import (
    Live,
    WriterState,
    find_writer,
    is_reporting,
    live_file,
    read_live,
    write_live,
)

WORKER = WorkerProgress(
    "box-a/gpu0-0", "GPU 0 (NVIDIA H200) of box-a", "iteration 3 self-play, shard 2: 40 of 100",
    120, 3.14, 0.5, 1.02, 1_288_490_188, 0.87, 12 << 30, 140 << 30,
)


def test_what_was_written_is_read_and_is_new_for_a_while(folder):
    stage = StageProgress(3, "self-play", "games", 120, 400, per_s=3.0, begun_s=1.7e9)
    live = Live((stage,), (WORKER, replace(WORKER, name="b")))
    assert read_live(folder) == Live()
    assert not is_reporting(folder)
    write_live(folder, live)
    assert read_live(folder) == live
    assert is_reporting(folder)
    for long in (-100, 100):
        then = time.time() + long
        os.utime(live_file(folder), (then, then))
        assert not is_reporting(folder), "written long ago, or before the clock was set back"


def test_it_has_the_newest_progress_of_each_stage_under_way():
    play, train = (StageProgress(3, name, "games", 0, 400) for name in ("self-play", "training"))
    live = Live()
    for event in (play, train, Message("a worker died"), replace(play, done=7)):
        live = live.after(event)
    assert live.stages == (replace(play, done=7), train)
    live = live.after(WorkersProgress((WORKER,))).after(replace(play, done=400, has_ended=True))
    assert live == Live((train,), (WORKER,))


@pytest.mark.parametrize("text", [
    "", "[{}]", '{"stages": [], "workers": [{"name": "x"}]}', '{"stages": "x", "workers": []}',
    json.dumps({"stages": [], "workers": [asdict(WORKER) | {"games": "120"}]}),
])
def test_what_is_damaged_or_of_another_version_says_nothing(folder, text):
    write_live(folder, Live((), ()))
    live_file(folder).write_text(text)
    assert read_live(folder) == Live()


def test_all_workers_in_a_line_count_each_gpu_once():
    others = [
        replace(WORKER, name="box-a/gpu0-1"),
        replace(WORKER, name="box-b/gpu0-0", device="another", gpu_share=0.47, quiet_s=20.0),
    ]
    line = str(WorkersProgress((WORKER, *others)))
    for part in ("360 games", "9.4/s", "3.1 cores", "67%", "24.0 GiB", "silent: box-b/gpu0-0"):
        assert part in line
    on_cpu = replace(WORKER, gpu_share=None, gpu_memory_bytes=None)
    assert "GPU" not in str(WorkersProgress((on_cpu,)))


# Finding out whether a process writes a campaign disturbs none.


def test_runs_while_it_holds_the_lock_and_not_merely_while_it_lives(folder):
    assert find_writer(folder) is None
    with campaign_lock(folder):
        writer = find_writer(folder)
        assert (writer.pid, writer.host) == (os.getpid(), socket.gethostname())
        assert writer.state is WriterState.RUNNING
        assert str(writer).startswith(f"running: process {os.getpid()} on {socket.gethostname()}")
    assert find_writer(folder).state is WriterState.STOPPED


def test_a_killed_writer_has_stopped_even_before_its_parent_asks(folder, lock_elsewhere):
    holder = lock_elsewhere(folder)
    assert find_writer(folder).state is WriterState.RUNNING
    holder.kill()
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    assert find_writer(folder).state is WriterState.STOPPED
    holder.wait()
    assert find_writer(folder).state is WriterState.STOPPED


def test_another_hosts_process_cannot_be_seen(folder):
    holder = {"host": "elsewhere", "pid": os.getpid(), "since": "2026-01-31T12:00:00+00:00"}
    folder.lock_file.write_text(json.dumps(holder))
    writer = find_writer(folder)
    assert writer.state is WriterState.ELSEWHERE
    assert writer.since.timestamp() == 1769860800


@pytest.mark.parametrize("text", [
    "", "[]", "\xff", '{"host": "a"}', '{"host": "a", "pid": -1, "since": "2026-01-31"}',
    '{"host": "a", "pid": 1, "since": "yesterday"}',
])
def test_a_lock_file_that_is_just_being_written_names_nobody(folder, text):
    folder.lock_file.write_text(text, encoding="latin-1")
    assert find_writer(folder) is None


# Texts of events, and which of them a log shows.


STAGE = StageProgress(3, "self-play", "games", 120, 400, per_s=3.0)
PROCESSOR = WorkerProgress(
    "box-a/cpu-0", "the processor of box-a", "", 10, 1.0, 0.1, 1.0, 2**30, None
)


def test_each_event_has_its_lines(tmp_path):
    folder = made.make_campaign(tmp_path / "campaign")
    receipt = made.finish(folder, 0)
    assert event_lines(Message("a worker died")) == ["a worker died"]
    assert "draw collapse" in event_lines(AlarmRaised(Alarm("draw collapse", 3, "saw", "")))[0]
    (line,) = event_lines(IterationFinished(receipt, campaign_length(folder)))
    assert line.startswith("iteration 0 (25% of the campaign): 200 games")


@pytest.mark.parametrize(("workers", "num_lines"), [
    (0, 0), (1, 2), (MOST_WORKERS, 1 + MOST_WORKERS), (MOST_WORKERS + 1, 1),
])
def test_many_workers_are_one_line(workers, num_lines):
    assert len(event_lines(WorkersProgress((PROCESSOR,) * workers))) == num_lines


def test_a_log_shows_progress_now_and_then_and_everything_else_always(monkeypatch):
    now_s = 1000.0
    monkeypatch.setattr(lines.time, "monotonic", lambda: now_s)
    is_due, workers = NowAndThen(), WorkersProgress((PROCESSOR,))
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
