"""A copy of a running campaign, made by ordinary tools in the order of docs/reliability.md."""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from campaign_driver import SMALL_OPTIONS, finish, launch, settings, wait_until
from small_campaigns import assert_same_campaign, play_iteration

from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.integrity.verify import verify_campaign

RECORDS = ("receipts", "plans", "matches")
PAUSE_S = 3.0


def copy_in_order(
    source: Path, target: Path, between: Callable[[], object] = lambda: None
) -> CampaignFolder:
    """Copy the records aside, then all else, then the records; ``between`` runs after the first."""
    records = target.with_name(f"{target.name}-records")
    records.mkdir()
    run("cp", "-r", *(f"{source / name}" for name in RECORDS), str(records))
    between()
    target.mkdir()
    left_out = (*(f"./{name}" for name in (*RECORDS, "services", "campaign.log")), ".tmp-*")
    run("tar", "-C", str(source), *(f"--exclude={name}" for name in left_out), "-cf",
        f"{records}.tar", ".")
    run("tar", "-C", str(target), "-xf", f"{records}.tar")
    run("cp", "-r", f"{records}/.", str(target))
    return CampaignFolder.open(target)


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def running(played_campaign: CampaignFolder, tmp_path: Path) -> CampaignFolder:
    """The first iteration is finished, and the second has played one of its shards."""
    path = tmp_path / "running"
    shutil.copytree(played_campaign.path, path)
    folder = CampaignFolder.open(path)
    for left in (folder.receipt(1), folder.shard(1, 1)):
        left.unlink()
    shutil.rmtree(folder.checkpoint(2))
    for event in ("gen-000002", "final"):
        shutil.rmtree(path / "matches" / event)
    return folder


def go_on(running: CampaignFolder, played: CampaignFolder) -> None:
    """Commit the rest of the campaign, as its process would."""
    shutil.copytree(played.path, running.path, dirs_exist_ok=True)


@pytest.mark.parametrize("meanwhile", [True, False])
def test_a_copy_is_of_the_moment_of_its_records_and_continues(
    running: CampaignFolder, played_campaign: CampaignFolder, tmp_path: Path, meanwhile: bool
) -> None:
    rest = (lambda: go_on(running, played_campaign)) if meanwhile else (lambda: None)
    copy = copy_in_order(running.path, tmp_path / "copy", rest)
    assert verify_campaign(copy).is_whole
    assert [receipt.iteration for receipt in read_receipts(copy)] == [0]
    assert copy.checkpoint(2).exists() is meanwhile, "committed after the records were copied"
    play_iteration(copy, 1)
    assert_same_campaign(copy.path, played_campaign.path)


def test_receipts_that_are_read_last_name_what_was_not_copied(
    running: CampaignFolder, played_campaign: CampaignFolder, tmp_path: Path
) -> None:
    copy = CampaignFolder.open(shutil.copytree(running.path, tmp_path / "copy"))
    go_on(running, played_campaign)
    run("cp", "-r", str(running.path / "receipts"), str(copy.path))
    lost = {found.path for found in verify_campaign(copy).damage}
    assert {"checkpoints/gen-000002", "games/iter-000001/shard-0001"} <= lost


@pytest.mark.orchestration
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_copy_of_a_running_campaign_is_whole_and_resumes(tmp_path: Path) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    options = [*SMALL_OPTIONS, *settings(campaign__iterations=3, self_play__max_plies_last=40)]
    process = launch("start", "--dir", str(path), *options, log=log)
    wait_until((path / "receipts").is_dir, process, log)
    wait_until((path / "matches").is_dir, process, log)
    copies: list[CampaignFolder] = []
    while process.poll() is None:
        copies.append(copy_in_order(path, tmp_path / f"copy-{len(copies)}"))
        time.sleep(PAUSE_S)
    finish(process, log)

    assert [copy.path for copy in copies if not verify_campaign(copy).is_whole] == []
    under_way = [copy for copy in copies if len(read_receipts(copy)) in (1, 2)]
    for copy in (under_way[0], under_way[-1]):
        again = tmp_path / f"{copy.path.name}.log"
        finish(launch("resume", str(copy.path), log=again), again)
        assert_same_campaign(copy.path, path)
