"""A campaign that is to last longer: its progress, who may say so, and what follows."""

import json
import socket

import pytest
from signed_files import edit
from small_campaigns import finish_without_games, play_iteration, play_match

from chess_snn.campaign import campaign_lock, read_receipts
from chess_snn.campaign.forking import extend_campaign
from chess_snn.campaign.integrity.gc import dispose, find_disposable
from chess_snn.campaign.integrity.preflight import check_settings
from chess_snn.campaign.integrity.rebuild import repair_campaign
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.store.plans import (
    CampaignClock,
    ProgressPlan,
    begin_iteration,
    campaign_length,
    next_plan,
    num_extensions,
    read_plan,
    read_plans,
)
from chess_snn.campaign.store.receipts import read_receipt, recorded_seconds
from chess_snn.campaign.strength.match_schedule import final_matches
from chess_snn.campaign.strength.matches import is_finished, read_final_matches
from chess_snn.campaign.viewing.live import Live, write_live
from chess_snn.campaign.viewing.results import result_rows
from chess_snn.campaign.viewing.watching import CampaignWatch
from chess_snn.errors import CampaignError, CorruptDataError, UsageError


def begin_all(folder, first: int = 0) -> list[tuple[float, float]]:
    """Progress of every iteration from ``first`` on, at its begin and at its end."""
    parts, number = [], first
    while plan := begin_iteration(folder, number, 60.0 * number):
        parts.append((plan.progress_first, plan.progress_last))
        number += 1
    return parts


def test_the_rest_of_the_progress_is_divided_among_what_is_left(new_folder):
    folder = new_folder("c", "campaign.iterations=4")
    for number in range(2):
        begin_iteration(folder, number, 0.0)
    committed = read_plans(folder)
    assert extend_campaign(folder, iterations=6) is False
    assert begin_all(folder, 2) == [(0.5, 0.625), (0.625, 0.75), (0.75, 0.875), (0.875, 1.0)]
    assert read_plans(folder)[:2] == committed
    assert folder.config.campaign.iterations == 4


def test_by_hours_progress_goes_on_from_where_it_is_and_never_falls(new_folder):
    folder = new_folder("c", "campaign.hours=1")
    for number, minutes in enumerate((0, 15, 30)):  # the last of which is guessed to end at 0.75
        begin_iteration(folder, number, 60.0 * minutes)
    extend_campaign(folder, hours=2)
    firsts = [
        begin_iteration(folder, number, 60.0 * minutes).progress_first
        for number, minutes in ((3, 30), (4, 75), (5, 119.9))
    ]
    assert firsts == pytest.approx([0.5, 0.75, 1.0], abs=1e-3)
    assert begin_iteration(folder, 6, 7200.0) is None


def test_iterations_may_become_hours_and_hours_iterations(new_folder):
    folder = new_folder("c", "campaign.iterations=2")
    begin_all(folder)
    extend_campaign(folder, hours=1)
    assert begin_iteration(folder, 2, 600.0).progress_first == 1.0
    extend_campaign(folder, iterations=4)
    assert begin_all(folder, 3) == [(1.0, 1.0)], "it had ended, and goes on at its end"
    assert str(campaign_length(folder)) == "4 iterations"


@pytest.mark.parametrize(("asked", "named", "length"), [
    ({"iterations": 4}, "--iterations 4", "iterations=4"),
    ({"hours": 0.01}, "0.02 hours", "iterations=4"), ({}, "--hours", "iterations=4"),
    ({"iterations": 9, "hours": 9.0}, "--hours", "iterations=4"),
    ({"iterations": 10**7}, "campaign.iterations", "iterations=4"),
    ({"hours": 2.0}, "--hours 2", "hours=2"),
])
def test_what_does_not_extend_is_refused_and_changes_nothing(new_folder, asked, named, length):
    folder = new_folder("c", f"campaign.{length}")
    before = campaign_length(folder)
    begin_iteration(folder, 0, 72.0)
    with pytest.raises(UsageError, match=named):
        extend_campaign(folder, **asked)
    assert not folder.extension(0).exists()
    assert campaign_length(folder) == before


def test_one_that_runs_here_finds_the_new_length_at_its_next_iteration(new_folder):
    folder = new_folder("c", "campaign.iterations=1")
    with campaign_lock(folder):
        begin_iteration(folder, 0, 0.0)
        assert extend_campaign(folder, iterations=2) is True
        assert begin_iteration(folder, 1, 60.0) is not None


def test_one_that_runs_elsewhere_is_left_alone(new_folder):
    folder = new_folder("c", "campaign.iterations=1")
    with campaign_lock(folder):
        holder = json.loads(folder.lock_file.read_text()) | {"host": "elsewhere"}
        folder.lock_file.write_text(json.dumps(holder))
        with pytest.raises(CampaignError, match="elsewhere"):
            extend_campaign(folder, iterations=2)
    # Where its lock is not seen here, its sign of life is.
    write_live(folder, Live((), ()))
    with pytest.raises(CampaignError, match="elsewhere"):
        extend_campaign(folder, iterations=2)
    assert not folder.extension(0).exists()
    (folder.services / "live.json").unlink()
    assert extend_campaign(folder, iterations=2) is False
    assert json.loads(folder.lock_file.read_text())["host"] == socket.gethostname()


def test_a_finished_campaign_goes_on_and_stays_whole(stored_campaign):
    folder = stored_campaign
    dispose(folder, find_disposable(folder))  # as somebody may have done when it had ended
    watch = CampaignWatch(folder.path)
    assert is_finished(folder)
    assert watch.look().is_finished
    extend_campaign(folder, iterations=3)
    assert not is_finished(folder)
    assert not watch.look().is_finished
    assert watch.look().progress == pytest.approx(2 / 3)
    check_settings(folder)
    play_iteration(folder, 2)
    for match in final_matches(folder):
        assert match.event == f"final-{num_extensions(folder)}"
        play_match(folder, match)
    assert verify_campaign(folder).is_whole
    assert is_finished(folder)
    assert len(read_receipts(folder)) == 3
    assert len(read_final_matches(folder)) == len(list((folder.path / "matches/final").iterdir()))


def test_a_damaged_extension_is_found_and_left_to_people(new_folder):
    folder = new_folder("c", "campaign.iterations=4")
    extend_campaign(folder, iterations=6)
    edit(folder.extension(0), length={"iterations": 0, "hours": 0.0})
    with pytest.raises(CorruptDataError, match="extension-0000"):
        begin_iteration(folder, 0, 0.0)
    findings = verify_campaign(folder)
    assert [(f.kind, f.path) for f in findings.damage] == [
        ("extension", "extensions/extension-0000.json"),
    ]
    assert not any(repair.is_repaired for repair in repair_campaign(folder, findings))
    extend = folder.extension(0)
    extend.rename(folder.extension(1))
    assert {f.path for f in verify_campaign(folder).damage} == {
        "extensions/extension-0000.json", "extensions/extension-0001.json",
    }


def test_a_table_has_shares_of_the_present_length_bug(new_folder):
    """Two iterations of an extended campaign were both 100 % of it."""
    folder = new_folder("c", "campaign.iterations=2")
    for number in range(2):
        finish_without_games(folder, number, number + 1)
    assert [row["progress"] for row in result_rows(folder, read_receipts(folder))] == [0.5, 1.0]
    extend_campaign(folder, iterations=4)
    finish_without_games(folder, 2, 3)
    rows = result_rows(folder, read_receipts(folder))
    assert [row["progress"] for row in rows] == [0.25, 0.5, 0.75]
    assert read_plan(folder, 2).progress_first == 1.0, "schedules stay at their end"


def test_by_hours_the_last_iteration_is_all_of_the_campaign(new_folder):
    folder = new_folder("c", "campaign.hours=1", "campaign.iterations=1")
    for number, ended_s in enumerate((1800.0, 3700.0)):
        finish_without_games(folder, number, number + 1, begun_s=1700.0 * number, ended_s=ended_s)
    assert [row["progress"] for row in result_rows(folder, read_receipts(folder))] == [0.5, 1.0]
    extend_campaign(folder, hours=2)
    shares = [row["progress"] for row in result_rows(folder, read_receipts(folder))]
    assert shares == pytest.approx([0.25, 3700 / 7200])


# Where an iteration stands is settled once; time counts while a campaign runs, and not between.


MINUTE_S = 60.0


def test_by_iterations_progress_is_a_ladder(new_folder):
    folder = new_folder("c", "campaign.iterations=4")
    parts = [(0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0)]
    assert begin_all(folder) == parts
    assert [(plan.progress_first, plan.progress_last) for plan in read_plans(folder)] == parts
    assert recorded_seconds(folder) == 3 * MINUTE_S
    assert str(campaign_length(folder)) == "4 iterations"


def test_by_hours_progress_follows_the_clock(new_folder):
    folder = new_folder("c", "campaign.hours=0.5", "campaign.iterations=1")
    minutes = [1.5, 9.0, 15.0, 29.9, 31.0]
    plans = [begin_iteration(folder, k, m * MINUTE_S) for k, m in enumerate(minutes)]
    assert plans[4] is None, "the time is up"
    firsts = [plan.progress_first for plan in plans[:4]]
    assert firsts == pytest.approx([0.05, 0.3, 0.5, 29.9 / 30])
    # Each is taken to last as long as the one before it did; of the first, nothing is known.
    lasts = [plan.progress_last for plan in plans[:4]]
    assert lasts == pytest.approx([0.05, 0.55, 0.7, 1.0])
    assert str(campaign_length(folder)) == "0.5 hours"


def test_a_plan_is_kept_however_late_its_iteration_is_resumed(new_folder):
    folder = new_folder("c", "campaign.hours=1")
    first = begin_iteration(folder, 0, 10.0)
    assert begin_iteration(folder, 0, 99.0 * 3600) == first
    assert begin_iteration(folder, 1, 99.0 * 3600) is None
    assert len(read_plans(folder)) == 1


def test_asking_what_is_next_commits_nothing(new_folder):
    folder = new_folder("c", "campaign.iterations=1")
    shards = folder.config.self_play.num_shards(1)
    assert next_plan(folder, 0, 5.0) == ProgressPlan(0, 0.0, 1.0, 5.0, shards)
    assert next_plan(folder, 1, 5.0) is None
    assert read_plans(folder) == []


def test_the_clock_goes_on_from_what_was_recorded():
    clock = CampaignClock(recorded_s=1000.0)
    first = clock.elapsed_s
    assert 1000.0 <= first < 1010.0
    assert clock.elapsed_s >= first


@pytest.mark.parametrize("damage", [
    {"schema": 99}, {"iteration": 1}, {"progress_first": 0.9, "progress_last": 0.1},
    {"progress_last": 1.5}, {"elapsed_s": -1.0}, {"more": 1}, {"num_shards": 0},
])
def test_a_damaged_plan_is_named(folder, damage):
    begin_iteration(folder, 0, 0.0)
    edit(folder.plan(0), **damage)
    with pytest.raises(CorruptDataError, match=r"plans/iter-000000\.json"):
        read_plans(folder)


def test_what_verify_makes_again_is_told_so_bug(new_folder):
    folder = new_folder("c")
    for read in (read_plan, read_receipt):
        with pytest.raises(CorruptDataError, match=r"iter-000000\.json.*/c"):
            read(folder, 0)
