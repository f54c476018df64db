"""A watcher is told what the folder says, at every point of a campaign's life."""

import json
import os
import socket
import time
from dataclasses import asdict
from datetime import UTC, datetime

import pytest
import small_campaigns as made
from signed_files import MATCH, write_signed

from chess_snn.campaign import campaign_lock, read_receipts
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.campaign.strength.champions import promote_by_hand
from chess_snn.campaign.strength.match_schedule import final_matches
from chess_snn.campaign.strength.matches import is_finished
from chess_snn.campaign.viewing.alarms import find_alarms
from chess_snn.campaign.viewing.events import GATING_MATCH, SELF_PLAY, StageProgress
from chess_snn.campaign.viewing.live import Live, write_live
from chess_snn.campaign.viewing.watching import CampaignWatch


@pytest.fixture
def folder(tmp_path):
    return made.make_campaign(tmp_path / "campaign")


def lock_from(folder, host: str, ago_s: float = 0.0) -> None:
    since = datetime.fromtimestamp(time.time() - ago_s, UTC).isoformat(timespec="seconds")
    folder.lock_file.write_text(json.dumps({"host": host, "pid": os.getpid(), "since": since}))


def stage_texts(watch: CampaignWatch) -> list[str]:
    return [str(stage) for stage in watch.look().stages]


def test_stages_are_those_that_the_process_wrote_last(folder):
    made.finish(folder, 0)
    made.begin(folder, 1)
    watch = CampaignWatch(folder.path)
    assert stage_texts(watch) == [], "nobody has run it"
    playing = StageProgress(1, SELF_PLAY, "games", 30, 200, per_s=10.0)
    write_live(folder, Live((playing, StageProgress(0, GATING_MATCH, "games", 3, 0)), ()))
    told = [
        "iteration 1 self-play: 30 of 200 games, 10.0/s, 17 s left",
        "iteration 0 gating match: 3 games",
    ]
    with campaign_lock(folder):
        assert stage_texts(watch) == told
    assert stage_texts(watch) == told, "where a campaign that was stopped goes on"
    for iteration in (1, 2, 3):
        made.finish(folder, iteration)
    assert stage_texts(watch) == [], "it has ended"


def test_a_champion_by_hand_is_seen_at_the_next_look(folder):
    for iteration in range(3):
        made.finish(folder, iteration)
    watch = CampaignWatch(folder.path)
    assert watch.look().champion == 3
    promote_by_hand(folder, 2, "ada", "a hunch")
    assert watch.look().champion == 2


def test_a_watch_from_the_beginning_ends_with_what_a_new_one_sees(folder):
    watch = CampaignWatch(folder.path)
    for iteration in range(4):
        assert not watch.look().is_finished
        made.finish(folder, iteration)
        told, fresh = watch.look(), CampaignWatch(folder.path).look()
        assert told.receipts == fresh.receipts == tuple(read_receipts(folder))
        assert told.rows == fresh.rows
        assert list(told.alarms) == find_alarms(told.rows)
        assert told.progress == (iteration + 1) / 4
        assert told.is_finished == is_finished(folder) == (iteration == 3)


def test_a_lost_receipt_is_named_and_its_iteration_done_again_bug(folder):
    watch = CampaignWatch(folder.path)
    for iteration in range(3):
        made.finish(folder, iteration)
    view = watch.look()
    assert (len(view.receipts), view.faults) == (3, ())
    folder.receipt(1).unlink()
    view = watch.look()
    assert len(view.receipts) == len(view.rows) == 1
    assert [folder.receipt(1).name in fault for fault in view.faults] == [True]
    made.finish(folder, 1)
    assert len(watch.look().receipts) == 3


def test_final_matches_follow_the_last_receipt(tmp_path):
    folder = made.make_campaign(
        tmp_path / "c", "campaign.iterations=2", "evaluation.final_openings=60"
    )
    watch = CampaignWatch(folder.path)
    made.finish(folder, 0)
    assert not watch.look().is_finished
    made.finish(folder, 1)
    assert not watch.look().is_finished
    first, *others = final_matches(folder)
    assert watch.look().final_matches == ()
    for match in (first, *others):
        path = folder.match(match.event, match.name)
        write_signed(path, MATCH, asdict(made.matches_of(2)[0]) | {"per_game": {}})
    view = watch.look()
    assert view.is_finished
    assert view.final_matches == (made.matches_of(2)[0],) * 4
    write_signed(folder.match(first.event, first.name), MATCH, {"name": "random"})
    view = CampaignWatch(folder.path).look()
    assert view.is_finished
    assert view.final_matches == (made.matches_of(2)[0],) * 3
    assert ["random-0.json" in fault for fault in view.faults] == [True]


def test_by_hours_the_campaign_ends_when_its_time_is_up(tmp_path):
    folder = made.make_campaign(tmp_path / "c", "campaign.hours=0.1")  # 360 s
    watch = CampaignWatch(folder.path)
    for iteration in range(4):
        view = watch.look()
        assert not view.is_finished
        assert view.progress == pytest.approx(100 * iteration / 360)
        assert view.seconds_left == pytest.approx(360 - 100 * iteration)
        made.finish(folder, iteration)
    view = watch.look()
    assert view.is_finished
    assert is_finished(folder)
    assert (view.progress, view.seconds_left, view.elapsed_s) == (1.0, 0.0, 400.0)


def test_the_clock_runs_from_the_newest_record_while_the_campaign_does(folder):
    made.finish(folder, 0)
    begin_iteration(folder, 1, 110.0)
    old = time.time() - 1000.0
    for path in (folder.receipt(0), folder.plan(1)):
        os.utime(path, (old, old))
    watch = CampaignWatch(folder.path)
    assert watch.look().elapsed_s == 110.0, "nobody runs it"
    with campaign_lock(folder):
        lock_from(folder, socket.gethostname(), ago_s=5.0)  # resumed after a long pause
        view = watch.look()
        assert view.is_running
        assert 110.0 + 3.9 <= view.elapsed_s <= 110.0 + 60.0
        assert view.seconds_left == pytest.approx(3 * 100.0 - (view.elapsed_s - 100.0))
    view = watch.look()
    assert (view.is_running, view.elapsed_s) == (False, 110.0)


def test_of_another_host_time_runs_up_to_the_last_sign_of_it(folder):
    made.finish(folder, 0)
    lock_from(folder, "elsewhere", ago_s=5000.0)
    view = CampaignWatch(folder.path).look()
    assert not view.is_running
    assert 100.0 <= view.elapsed_s <= 130.0
    assert view.last_sign_s <= time.time() + 1.0


def test_its_state_is_told(folder):
    watch = CampaignWatch(folder.path)
    assert watch.look().state_text.startswith("not begun")
    made.finish(folder, 0)
    assert watch.look().state_text.startswith("stopped: no process")
    lock_from(folder, socket.gethostname())
    assert watch.look().state_text.startswith("stopped: process")
    lock_from(folder, "elsewhere")
    assert watch.look().state_text.startswith("on another host")
    for iteration in range(1, 4):
        made.finish(folder, iteration)
    assert watch.look().state_text == "finished"


def test_looking_writes_nothing(folder):
    made.finish(folder, 0)
    made.begin(folder, 1)
    before = {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")}
    watch = CampaignWatch(folder.path)
    for _ in range(3):
        watch.look()
    assert {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")} == before
