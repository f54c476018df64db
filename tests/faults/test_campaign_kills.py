"""Faults a campaign survives: killed workers, killed campaigns, Ctrl-C and SIGTERM."""

import json
import os
import signal
from pathlib import Path

import pytest
from campaign_driver import (
    FINISH_TIMEOUT_S,
    assert_gone,
    assert_whole,
    committed_shards,
    dask_workers,
    descendants,
    finish,
    kill_campaign,
    launch,
    settings,
    wait_until,
)
from made_imports import make_import

from chess_snn.campaign import read_receipts
from chess_snn.data import is_committed, read_manifest, read_shard
from chess_snn.training import supervised_progress

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(600)]

SETTINGS = settings(
    campaign__iterations=1,
    campaign__seed=7,
    self_play__games_per_iteration=160,
    self_play__games_per_shard=40,
    self_play__max_plies_first=60,
    self_play__max_plies_last=60,
    search__simulations_first=2,
    search__simulations_last=2,
    training__presentations=1.0,
    evaluation__opponents='["random", "minimax:2"]',
    evaluation__num_openings=10,
    evaluation__won_positions=4,
    execution__workers=2,
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign with SETTINGS that nobody touched."""
    base = tmp_path_factory.mktemp("undisturbed")
    process = launch("start", "--dir", str(base / "c"), *SETTINGS, log=base / "log")
    finish(process, base / "log")
    return base / "c"


def test_killed_worker_costs_only_its_shard(tmp_path: Path, undisturbed: Path) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    process = launch("start", "--dir", str(path), *SETTINGS, log=log)
    # In the middle of self-play: one shard is there, others are being played.
    wait_until(lambda: len(committed_shards(path, 0)) >= 1, process, log)
    workers = dask_workers(process)
    assert len(workers) == 2
    workers[0].kill()
    finish(process, log)
    assert_same_result(path, undisturbed)


def test_campaign_killed_in_every_stage_resumes_to_the_same_result(
    tmp_path: Path, undisturbed: Path
) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    checkpoint = path / "checkpoints" / "gen-000001"
    num_shards = 4

    process = launch("start", "--dir", str(path), *SETTINGS, log=log)
    wait_until(lambda: len(committed_shards(path, 0)) >= 1, process, log)
    kill_campaign(process)
    before = identities(path)
    assert 1 <= len(before) < num_shards, "killed too late to be in self-play"

    process = launch("resume", str(path), log=log)
    wait_until(lambda: len(committed_shards(path, 0)) == num_shards, process, log)
    kill_campaign(process)
    assert not is_committed(checkpoint), "killed too late to be in training"
    assert before.items() <= identities(path).items(), "a committed shard was played again"
    before = identities(path)

    process = launch("resume", str(path), log=log)
    wait_until(lambda: is_committed(checkpoint), process, log)
    kill_campaign(process)
    assert not (path / "receipts" / "iter-000000.json").exists(), "killed too late"

    process = launch("resume", str(path), log=log)
    finish(process, log)
    assert identities(path) == before, "a committed shard was played again"
    assert_same_result(path, undisturbed)


@pytest.mark.slow
def test_campaign_killed_while_two_iterations_are_alive_resumes_both(tmp_path: Path) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    two = [*SETTINGS, *settings(campaign__iterations=2)]
    process = launch("start", "--dir", str(path), *two, log=log)
    # The first is trained and not evaluated, the second is in the middle of self-play.
    wait_until(lambda: len(committed_shards(path, 1)) >= 1, process, log)
    kill_campaign(process)
    assert not (path / "receipts" / "iter-000000.json").exists(), "killed too late"
    before = {i: identities(path, i) for i in (0, 1)}
    plans = [(path / "plans" / f"iter-00000{i}.json").read_bytes() for i in (0, 1)]

    finish(launch("resume", str(path), log=log), log)
    folder = assert_whole(path, iterations=2)
    assert identities(path, 0) == before[0]
    assert before[1].items() <= identities(path, 1).items(), "a committed shard was played again"
    assert [folder.plan(i).read_bytes() for i in (0, 1)] == plans
    first, second = read_receipts(folder)
    assert [len(receipt.matches) for receipt in (first, second)] == [3, 3]
    assert first.elapsed_s < second.elapsed_s


@pytest.mark.slow
def test_campaign_killed_while_it_learns_from_games_begins_with_the_same_network(
    tmp_path: Path
) -> None:
    games = make_import(tmp_path / "games", num_shards=4)
    warm = [
        *SETTINGS, "--warm-start", str(games), *settings(
            supervised__epochs=40, supervised__checkpoint_minutes=0.01, training__batch_size=64,
            self_play__games_per_iteration=8, self_play__games_per_shard=4,
        ),
    ]
    log = tmp_path / "log"
    finish(launch("start", "--dir", str(tmp_path / "whole"), *warm, log=log), log)

    path = tmp_path / "killed"
    process = launch("start", "--dir", str(path), *warm, log=log)
    wait_until(lambda: (supervised_progress(path / "supervised") or (0, 0))[0] > 0, process, log)
    kill_campaign(process)
    assert not is_committed(path / "checkpoints" / "gen-000000"), "killed too late"
    finish(launch("resume", str(path), log=log), log)
    assert_whole(path, iterations=1)
    assert not (path / "supervised").exists()
    digests = [
        read_manifest(tmp_path / name / "checkpoints" / f"gen-00000{generation}")
        .meta["weights_digest"]
        for generation in (0, 1) for name in ("whole", "killed")
    ]
    assert digests[0] == digests[1] != digests[2] == digests[3]


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "whole_group"), [
    (signal.SIGINT, False),
    (signal.SIGINT, True),  # what a terminal does: every process in the foreground hears it
    (signal.SIGTERM, False),
    (signal.SIGTERM, True),  # what a batch system does that ends a job
], ids=["process", "terminal", "kill", "job"])
def test_ctrl_c_leaves_a_campaign_that_resumes(
    tmp_path: Path, undisturbed: Path, sent: signal.Signals, whole_group: bool
) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    process = launch("start", "--dir", str(path), *SETTINGS, log=log)
    wait_until(lambda: len(committed_shards(path, 0)) >= 1, process, log)
    started = descendants(process)
    if whole_group:
        os.killpg(process.pid, sent)
    else:
        process.send_signal(sent)
    assert process.wait(30) == 130, log.read_text()[-3000:]
    text = log.read_text()
    assert "chess-snn campaign resume" in text
    assert "Traceback" not in text
    assert_gone(started)

    finish(launch("resume", str(path), log=log), log)
    assert_same_result(path, undisturbed)


@pytest.mark.slow
def test_frozen_worker_is_replaced(tmp_path: Path, undisturbed: Path) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    process = launch("start", "--dir", str(path), *SETTINGS, log=log)
    wait_until(lambda: len(committed_shards(path, 0)) >= 1, process, log)
    frozen = dask_workers(process)[0]
    frozen.suspend()
    try:
        finish(process, log)
        assert_gone([frozen])
    finally:
        if frozen.is_running():
            frozen.kill()
    assert_same_result(path, undisturbed)


@pytest.mark.slow
def test_campaign_without_its_prefect_server_ends_and_resumes(
    tmp_path: Path, undisturbed: Path
) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    process = launch("start", "--dir", str(path), *SETTINGS, log=log)
    wait_until(lambda: len(committed_shards(path, 0)) >= 1, process, log)
    started = descendants(process)
    server = json.loads((path / "services" / "prefect-server.json").read_text())
    os.killpg(server["pid"], signal.SIGKILL)
    assert process.wait(2 * FINISH_TIMEOUT_S) == 2, log.read_text()[-3000:]
    assert "error: the Prefect server at http://127.0.0.1:" in log.read_text()
    assert_gone(started)

    finish(launch("resume", str(path), log=log), log)
    assert_same_result(path, undisturbed)


def identities(path: Path, iteration: int = 0) -> dict[str, tuple[int, int]]:
    """Which file each committed shard's manifest is: changes when a shard is written again."""
    stats = {
        shard.name: (shard / "MANIFEST.json").stat()
        for shard in committed_shards(path, iteration)
    }
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items()}


def assert_same_result(path: Path, undisturbed: Path) -> None:
    """The same games and weights as the campaign that nobody touched."""
    assert_whole(path, iterations=1)
    for shard in committed_shards(path, 0):
        games, _ = read_shard(shard)
        expected, _ = read_shard(undisturbed / shard.relative_to(path))
        assert games.actions.tolist() == expected.actions.tolist()
    digests = [
        read_manifest(base / "checkpoints" / "gen-000001").meta["weights_digest"]
        for base in (path, undisturbed)
    ]
    assert digests[0] == digests[1]
