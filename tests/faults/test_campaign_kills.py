"""Faults a campaign survives: killed and frozen workers, killed campaigns, Ctrl-C and SIGTERM."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest
from campaign_driver import (
    FINISH_TIMEOUT_S,
    SMALL_OPTIONS,
    START_TIMEOUT_S,
    assert_gone,
    dask_workers,
    descendants,
    faults_at,
    finish,
    kill_campaign,
    launch,
    settings,
    wait_until,
)
from made_imports import make_import
from small_campaigns import (
    assert_same_campaign,
    assert_whole,
    committed_shards,
    play_iteration,
)
from supervised_steps import supervised_progress

from chess_snn.campaign import CampaignFolder, load_config, read_receipts
from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.data import is_committed, read_manifest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(7200)]

SETTINGS = settings(
    campaign__iterations=1,
    campaign__seed=7,
    self_play__games_per_iteration=96,
    self_play__games_per_shard=24,
    self_play__max_plies_first=40,
    self_play__max_plies_last=40,
    search__simulations_first=2,
    search__simulations_last=2,
    training__presentations=1.0,
    evaluation__opponents='["random", "minimax:2"]',
    evaluation__num_openings=3,
    evaluation__won_positions=4,
    evaluation__ladder_test_games=4,
    execution__workers=2,
)


SETTINGS_OF = {
    "smoke": SETTINGS,
    "smoke-2048": settings(
        campaign__iterations=1,
        campaign__seed=7,
        self_play__games_per_iteration=48,
        self_play__games_per_shard=12,
        self_play__max_plies_first=60,
        self_play__max_plies_last=60,
        training__presentations=1.0,
        evaluation__opponents='["random", "expectimax:1"]',
        evaluation__num_openings=3,
        evaluation__max_plies=60,
        execution__workers=2,
    ),
}
"""Presets: one game each of two players and of one."""


@pytest.fixture(scope="module")
def undisturbed_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives a finished campaign of SETTINGS_OF, all of it played in this process."""

    @cache
    def played(preset: str) -> Path:
        wanted = [text.removeprefix("--set=") for text in SETTINGS_OF[preset]]
        path = tmp_path_factory.mktemp("undisturbed") / "c"
        folder = CampaignFolder.create(path, load_config(preset, settings=wanted))
        prepare_first_generation(folder)
        play_iteration(folder, 0)
        return path

    return played


@pytest.fixture(scope="module")
def undisturbed(undisturbed_of: Callable[[str], Path]) -> Path:
    return undisturbed_of("smoke")


@pytest.mark.fault(1)
@pytest.mark.slow
def test_killed_worker_is_told_and_costs_only_its_shard(tmp_path: Path, undisturbed: Path) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    process = launch("start", "--dir", str(path), *SETTINGS, log=log)
    # In the middle of self-play: one shard is there, others are being played.
    wait_until(lambda: len(committed_shards(path, 0)) >= 1, process, log)
    before, workers = identities(path), dask_workers(process)
    assert len(workers) == 2
    workers[0].kill()
    wait_until(lambda: "SIGKILL" in log.read_text(), process, log, within_s=10.0)
    finish(process, log)
    assert before.items() <= identities(path).items(), "a committed shard was played again"
    assert_same_campaign(path, undisturbed)


@pytest.mark.slow
@pytest.mark.fault(3, 5)
@pytest.mark.parametrize("preset", SETTINGS_OF)
def test_campaign_killed_in_every_stage_resumes_to_the_same_result(
    tmp_path: Path, undisturbed_of: Callable[[str], Path], preset: str
) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    checkpoint = path / "checkpoints" / "gen-000001"
    num_shards = 4

    # The first shard of all is the one that it warms up with.
    start = ("start", "--preset", preset, "--dir", str(path), *SETTINGS_OF[preset])
    kill_where_held(*start, log=log, place="shard.renamed@2")
    before = identities(path)
    assert 1 <= len(before) < num_shards

    kill_where_held("resume", str(path), log=log, place="training.begins")
    assert before.items() <= identities(path).items(), "a committed shard was played again"
    before = identities(path)
    assert len(before) == num_shards
    assert not is_committed(checkpoint)

    kill_where_held("resume", str(path), log=log, place="match.played")
    assert is_committed(checkpoint)
    assert not (path / "receipts" / "iter-000000.json").exists()

    process = launch("resume", str(path), log=log)
    finish(process, log)
    assert identities(path) == before, "a committed shard was played again"
    assert_same_campaign(path, undisturbed_of(preset))


@pytest.mark.slow
@pytest.mark.fault(3, 5)
def test_campaign_killed_while_two_iterations_are_alive_resumes_both(tmp_path: Path) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    two = [*SETTINGS, *settings(campaign__iterations=2)]
    # The first is trained and has no receipt, the second is in the middle of self-play: its first
    # shard comes after the one of warming up and four of the first.
    kill_where_held(
        "start", "--dir", str(path), *two, log=log, place="shard.renamed@6",
        also={"receipt.begins": "hold"},
    )
    assert is_committed(path / "checkpoints" / "gen-000001")
    assert not (path / "receipts" / "iter-000000.json").exists()
    assert 1 <= len(committed_shards(path, 1)) < 4
    before = {i: identities(path, i) for i in (0, 1)}
    plans = [(path / "plans" / f"iter-00000{i}.json").read_bytes() for i in (0, 1)]

    finish(launch("resume", str(path), log=log), log)
    folder = assert_whole(path)
    assert identities(path, 0) == before[0]
    assert before[1].items() <= identities(path, 1).items(), "a committed shard was played again"
    assert [folder.plan(i).read_bytes() for i in (0, 1)] == plans
    first, second = read_receipts(folder)
    assert [len(receipt.matches) for receipt in (first, second)] == [3, 3]
    assert first.elapsed_s < second.elapsed_s


@pytest.mark.slow
@pytest.mark.fault(3)
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
    # The first checkpoint of all is one on the way.
    kill_where_held("start", "--dir", str(path), *warm, log=log, place="checkpoint.renamed")
    assert (supervised_progress(path / "supervised") or (0, 0))[0] > 0
    assert not is_committed(path / "checkpoints" / "gen-000000")
    finish(launch("resume", str(path), log=log), log)
    assert_whole(path)
    assert not (path / "supervised").exists()
    digests = [
        read_manifest(tmp_path / name / "checkpoints" / f"gen-00000{generation}")
        .meta["weights_digest"]
        for generation in (0, 1) for name in ("whole", "killed")
    ]
    assert digests[0] == digests[1] != digests[2] == digests[3]


@pytest.mark.slow
@pytest.mark.fault(22)
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
    assert_same_campaign(path, undisturbed)


@pytest.mark.slow
@pytest.mark.fault(22)
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "kill"])
def test_a_second_signal_ends_a_campaign_at_once(
    tmp_path: Path, undisturbed: Path, sent: signal.Signals
) -> None:
    path, log, fired = tmp_path / "c", tmp_path / "log", tmp_path / "fired"
    stuck = faults_at(fired, campaign__stopping="hold")
    process = launch("start", "--dir", str(path), *SETTINGS, log=log, environment=stuck)
    wait_until(lambda: len(committed_shards(path, 0)) >= 1, process, log)
    started = descendants(process)
    process.send_signal(sent)
    wait_until((fired / "campaign.stopping").exists, process, log)
    time.sleep(1.0)  # closer together, two signals are one
    assert process.poll() is None, "the first one ended it: the test shows nothing"
    process.send_signal(sent)
    assert process.wait(30) == 130
    assert_gone(started)

    finish(launch("resume", str(path), log=log), log)
    assert_same_campaign(path, undisturbed)


@pytest.mark.slow
@pytest.mark.fault(14)
def test_work_that_every_worker_dies_of_stops_the_campaign_resumably(
    tmp_path: Path, undisturbed_small: Path
) -> None:
    path, log, fired = tmp_path / "c", tmp_path / "log", tmp_path / "fired"
    deadly = faults_at(fired, shard__played="kill")
    process = launch(
        "start", "--dir", str(path), *SMALL_OPTIONS, "--set=execution.workers=1",
        log=log, environment=deadly,
    )
    deadline = time.monotonic() + FINISH_TIMEOUT_S
    while process.poll() is None:
        # It kills the next one too: with one worker, none comes by before that.
        (fired / "shard.played").unlink(missing_ok=True)
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.1)
    text = log.read_text()
    assert process.returncode == 2, text[-3000:]
    assert "[workers.lost]" in text
    assert text.count("SIGKILL") >= 4
    assert "Traceback" not in text
    assert committed_shards(path, 0) == []

    finish(launch("resume", str(path), log=log), log)
    assert_same_campaign(path, undisturbed_small)


@pytest.mark.slow
@pytest.mark.fault(2)
def test_frozen_worker_is_told_killed_and_replaced(tmp_path: Path, undisturbed: Path) -> None:
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
    assert_same_campaign(path, undisturbed)


@pytest.mark.slow
@pytest.mark.fault(16)
def test_a_second_campaign_in_a_folder_is_refused_while_the_first_runs(
    tmp_path: Path, undisturbed_small: Path
) -> None:
    path, log, fired = tmp_path / "c", tmp_path / "log", tmp_path / "fired"
    # Hold the last iteration: no process comes there again once the mark is gone.
    environment = faults_at(fired, **{"training.begins@2": "hold"})
    process = launch("start", "--dir", str(path), *SMALL_OPTIONS, log=log, environment=environment)
    wait_until((fired / "training.begins").exists, process, log)
    for arguments, said in (
        (("resume", str(path)), f"process {process.pid} "),
        (("start", "--dir", str(path), *SMALL_OPTIONS), "chess-snn campaign resume"),
    ):
        second_log = tmp_path / f"{arguments[0]}.log"
        second = launch(*arguments, log=second_log)
        assert second.wait(START_TIMEOUT_S) == 2, second_log.read_text()[-3000:]
        text = second_log.read_text()
        assert text.count("error: ") == 1
        assert said in text
        assert "Traceback" not in text
    assert process.poll() is None
    (fired / "training.begins").unlink()
    finish(process, log)
    assert_same_campaign(path, undisturbed_small)


def kill_where_held(
    *arguments: str, log: Path, place: str, also: Mapping[str, str] | None = None
) -> None:
    """Run a campaign until somebody is held at the failpoint ``place``, and kill -9 it."""
    fired = log.with_name(f"fired-{place}")
    environment = faults_at(fired, **{place: "hold"}, **(also or {}))
    process = launch(*arguments, log=log, environment=environment)
    wait_until((fired / place.partition("@")[0]).exists, process, log)
    kill_campaign(process)


def identities(path: Path, iteration: int = 0) -> dict[str, tuple[int, int]]:
    """Which file each committed shard is: changes when a shard is written again."""
    stats = {shard.name: shard.stat() for shard in committed_shards(path, iteration)}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items()}
