"""Artifacts that may go are found, shown and removed; nothing that is needed ever goes."""

import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from small_campaigns import commit, finish, make_campaign
from stored_files import copy_campaign

from chess_snn.campaign import CampaignFolder, read_receipts, write_receipt
from chess_snn.campaign.artifacts.retention import first_iteration_needed, generations_needed
from chess_snn.campaign.forking import fork_campaign, fork_config
from chess_snn.campaign.integrity.gc import dispose, find_disposable
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.models.versions import campaign_versions
from chess_snn.campaign.stages import window_shards
from chess_snn.campaign.stages.networks import evaluator_of
from chess_snn.campaign.stages.window import iteration_to_train, removed_games_notice
from chess_snn.campaign.store.collection import open_collection
from chess_snn.campaign.store.notes import (
    missing_facts,
    quarantine,
    read_notes,
    read_removals,
)
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.campaign.store.receipt_parts import PromotionFacts
from chess_snn.campaign.strength.champions import promote_by_hand
from chess_snn.campaign.strength.match_schedule import generation_matches
from chess_snn.errors import CampaignError, RemovedError, UsageError

GONE = 2**22 + 11
"""No process has this number."""


@pytest.fixture
def finished(tmp_path: Path) -> CampaignFolder:
    return copy_campaign(tmp_path)


@pytest.fixture
def run_on(tmp_path: Path) -> Callable[..., CampaignFolder]:
    """Makes a campaign of which twelve iterations of twenty are finished, and one has begun."""

    def make(*changes: str, **facts: int) -> CampaignFolder:
        folder = make_campaign(tmp_path / "running", "campaign.iterations=20", *changes)
        for iteration in range(12):
            write_receipt(folder, replace(finish(folder, iteration), **facts))
        begin_iteration(folder, 12, 1200.0)
        return folder

    return make


@pytest.fixture
def running(run_on: Callable[..., CampaignFolder]) -> CampaignFolder:
    """Its window holds about the newest four iterations."""
    folder = run_on()
    for iteration, receipt in enumerate(read_receipts(folder)):
        receipt.training.window_shards[:] = [
            f"iter-{i:06d}/shard-{s:04d}" for i in range(max(0, iteration - 3), iteration + 1)
            for s in range(2)
        ]
        write_receipt(folder, receipt)
    return folder


def names(folder: CampaignFolder, sort: str) -> list[str]:
    return [entry.path.name for entry in find_disposable(folder) if entry.sort == sort]


def test_games_outside_every_window_to_come_may_go(running: CampaignFolder) -> None:
    assert first_iteration_needed(running) == 8
    assert names(running, "games") == [f"iter-{i:06d}" for i in range(8)]
    newest = read_receipts(running)[-1]
    newest.training.window_shards[:] = ["iter-000011/shard-0000", "iter-000011/shard-0001"]
    write_receipt(running, newest)
    assert first_iteration_needed(running) == 10, "self-play restarts from games before the window"


def test_no_game_may_go_before_a_receipt_says_what_the_window_is(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "new")
    assert find_disposable(folder) == []
    begin_iteration(folder, 0, 0.0)
    assert first_iteration_needed(folder) == 0


def test_generations_that_may_be_wanted_again_stay(
    run_on: Callable[..., CampaignFolder],
) -> None:
    folder = run_on(champion=1)
    assert names(folder, "checkpoints") == [f"gen-{g:06d}" for g in range(2, 8)]
    needed = generations_needed(folder)
    assert {8, 11} <= needed, "the opponent from two thirds of the way, and all after it"
    assert 12 in needed, "the newest"
    promote_by_hand(folder, 3, "ada", "liked it")
    assert generations_needed(folder) & set(range(8)) == {0, 1, 3}, "the first and champions"
    newest = read_receipts(folder)[-1]
    played = PromotionFacts(
        candidate=6, champion=5, verdict="accept", llr=0.0, lower=-3.0, upper=3.0, elo0=-35.0,
        elo1=35.0, simulations=8, games=2, wins=0, draws=2, losses=0, truncated=0,
        pairs=[0, 0, 1, 0, 0], score=0.5,
    )
    write_receipt(folder, replace(newest, promotion=played))
    needed = generations_needed(folder)
    assert needed & set(range(8)) == {0, 1, 3, 5, 6}, "both of the newest gating match"


def test_gc_between_two_iterations_under_way_takes_the_opponent_of_the_first_bug(
    run_on: Callable[..., CampaignFolder],
) -> None:
    """Iteration 12 has trained and has no receipt, and iteration 13 has begun."""
    folder = run_on("evaluation.every=1", champion=1)
    commit(folder.checkpoint(13))
    begin_iteration(folder, 13, 1500.0)
    dispose(folder, find_disposable(folder))
    (earlier,) = (
        match.opponent for match in generation_matches(folder, 13) if match.name == "earlier"
    )
    assert earlier == 8
    assert folder.checkpoint(earlier).exists()


def test_a_finished_campaign_can_do_without_its_games(finished: CampaignFolder) -> None:
    before = sorted(finished.path.rglob("*"))
    assert names(finished, "games") == ["iter-000000", "iter-000001"]
    assert find_disposable(finished, keep=["games"]) == [
        entry for entry in find_disposable(finished) if entry.sort != "games"
    ]
    sizes = {entry.path.name: entry.num_bytes for entry in find_disposable(finished)}
    assert sizes["iter-000000"] == sum(
        path.stat().st_size for path in finished.shard(0, 0).parent.rglob("*") if path.is_file()
    )
    assert sorted(finished.path.rglob("*")) == before, "looking changes nothing"


def test_leftovers_of_the_dead_may_go_and_those_of_the_living_not(
    finished: CampaignFolder,
) -> None:
    host = socket.gethostname()
    dead = finished.checkpoint(0).with_name(f".tmp-gen-000009@{host}-{GONE}-00000000")
    alive = finished.checkpoint(0).with_name(f".tmp-gen-000009@{host}-{os.getpid()}-00000000")
    for path in (dead, alive):
        path.mkdir()
    part = finished.match_part("gen-000001", "random", 0)
    unfinished = finished.match_part("gen-000003", "random", 0)
    unfinished.parent.mkdir()
    for path in (part, unfinished):
        path.write_text("{}")
    assert sorted(names(finished, "leftovers")) == sorted([dead.name, part.name])


def test_what_is_inside_another_goes_with_it_and_once_bug(finished: CampaignFolder) -> None:
    temporary = f"@{socket.gethostname()}-{GONE}-00000000"
    stage = finished.checkpoint(0).with_name(f".tmp-gen-000009{temporary}")
    in_games = finished.shard(0, 0).with_name(f".tmp-shard-0009{temporary}")
    for path in (stage, in_games):
        path.mkdir()
        (path / f".tmp-trainer.json{temporary}").write_text("{")
    finished.quarantine.mkdir(exist_ok=True)
    note = finished.quarantine / f".tmp-games.0000.json{temporary}"
    note.write_text("{")
    disposable = find_disposable(finished)
    paths = [entry.path for entry in disposable]
    assert {stage, note} <= set(paths)
    assert in_games.parent in paths
    assert not any(path in other.parents for path in paths for other in paths)
    assert len(set(paths)) == len(paths)
    dispose(finished, disposable)
    assert find_disposable(finished) == []


def test_what_was_removed_is_noted_and_everybody_copes(finished: CampaignFolder) -> None:
    receipts, notes = read_receipts(finished), read_notes(finished)
    quarantine(finished, finished.shard(0, 1), "to have something in quarantine")
    champion = receipts[-1].champion
    disposable = find_disposable(finished)
    dispose(finished, disposable)
    assert not any(entry.path.exists() for entry in disposable)
    assert find_disposable(finished) == []
    assert set(read_removals(finished)) >= {"games/iter-000000", "games/iter-000001"}
    assert len(read_notes(finished)) == len(notes) + 1

    assert read_receipts(finished) == receipts
    findings = verify_campaign(finished)
    assert findings.is_whole
    assert "removed" in {finding.state for finding in findings.found}
    versions = {version.generation: version for version in campaign_versions(finished)}
    assert not versions[champion].is_removed
    for generation, version in versions.items():
        assert version.is_removed == (not finished.checkpoint(generation).exists())
        assert version.created
    assert missing_facts(finished)["removed_iterations"] == 2
    with pytest.raises(UsageError):
        open_collection(finished.path)


def test_games_that_the_next_window_lacks_are_told_bug(
    finished: CampaignFolder, tmp_path: Path
) -> None:
    """A campaign that was extended or forked after gc went another way, and nothing said so."""
    assert removed_games_notice(finished) is None
    dispose(finished, find_disposable(finished))
    assert "removed games" in str(removed_games_notice(finished))
    config = fork_config(finished, 1, ["campaign.iterations=4"])
    forked = fork_campaign(finished, tmp_path / "fork", 1, config)
    assert removed_games_notice(forked) is not None


@pytest.mark.parametrize(("positions", "is_told"), [(20_000, False), (1_000_000, True)])
def test_removed_games_outside_the_next_window_are_not_told(
    run_on: Callable[..., CampaignFolder], positions: int, is_told: bool
) -> None:
    folder = run_on(f"training.window_positions={positions}", "training.window_growth=0")
    dispose(folder, [
        entry for entry in find_disposable(folder) if entry.path.name == "iter-000000"
    ])
    assert (removed_games_notice(folder) is not None) == is_told


def test_a_network_that_was_removed_is_named_as_such(running: CampaignFolder) -> None:
    for receipt in read_receipts(running):
        write_receipt(running, replace(receipt, champion=1))
    dispose(running, find_disposable(running))
    assert not running.checkpoint(2).exists()
    with pytest.raises(RemovedError):
        evaluator_of(running, 2)
    # Iterations whose generation was removed are trained all the same.
    shutil.rmtree(running.checkpoint(12))
    with pytest.raises(CampaignError):
        iteration_to_train(running, 12)
    assert iteration_to_train(running) == 11


def test_a_window_ends_where_games_were_removed(finished: CampaignFolder) -> None:
    before = window_shards(finished, 1)
    assert [path.parent.name for path in before] == ["iter-000000"] * 2 + ["iter-000001"] * 2
    dispose(finished, [
        entry for entry in find_disposable(finished) if entry.path.name == "iter-000000"
    ])
    assert window_shards(finished, 1) == before[2:]


def test_a_removal_that_was_killed_is_gone_on_with(finished: CampaignFolder) -> None:
    """After the note and one of two folders."""
    disposable = find_disposable(finished)
    dispose(finished, disposable[:1])
    shutil.copytree(finished.checkpoint(0), disposable[0].path / "shard-0000")
    assert disposable[0].path.name in names(finished, "games")
    dispose(finished, find_disposable(finished))
    assert find_disposable(finished) == []
