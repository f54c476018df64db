"""Where an iteration stands is settled once; time counts while a campaign runs, and not between."""


import pytest
from signed_files import edit

from chess_snn.campaign.store.extensions import campaign_length
from chess_snn.campaign.store.plans import (
    CampaignClock,
    ProgressPlan,
    begin_iteration,
    next_plan,
    read_plan,
    read_plans,
)
from chess_snn.campaign.store.receipts import read_receipt, recorded_seconds
from chess_snn.errors import CorruptDataError

MINUTE_S = 60.0


def test_by_iterations_progress_is_a_ladder(new_folder):
    folder = new_folder("c", "campaign.iterations=4")
    plans = []
    while plan := begin_iteration(folder, len(plans), elapsed_s=7.0 * len(plans)):
        plans.append(plan)
    assert [(p.progress_first, p.progress_last) for p in plans] == [
        (0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0)
    ]
    assert read_plans(folder) == plans
    assert recorded_seconds(folder) == 21.0
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
    assert next_plan(folder, 0, 5.0) == ProgressPlan(0, 0.0, 1.0, 5.0)
    assert next_plan(folder, 1, 5.0) is None
    assert read_plans(folder) == []


def test_the_clock_goes_on_from_what_was_recorded():
    clock = CampaignClock(recorded_s=1000.0)
    first = clock.elapsed_s
    assert 1000.0 <= first < 1010.0
    assert clock.elapsed_s >= first


@pytest.mark.parametrize("damage", [
    {"schema": 99}, {"iteration": 1}, {"progress_first": 0.9, "progress_last": 0.1},
    {"progress_last": 1.5}, {"elapsed_s": -1.0}, {"more": 1}, {"elapsed_s": "soon"},
])
def test_a_damaged_plan_is_named(new_folder, damage):
    folder = new_folder()
    begin_iteration(folder, 0, 0.0)
    edit(folder.plan(0), **damage)
    with pytest.raises(CorruptDataError, match=r"plans/iter-000000\.json"):
        read_plans(folder)


def test_what_verify_makes_again_is_told_so_bug(new_folder):
    folder = new_folder("c")
    for read in (read_plan, read_receipt):
        with pytest.raises(CorruptDataError, match=r"iter-000000\.json.* verify .*/c --repair"):
            read(folder, 0)
