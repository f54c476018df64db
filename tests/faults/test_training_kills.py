"""A campaign that trains in ranks: one of them is killed, and the campaign goes on."""

import re
from pathlib import Path

import psutil
import pytest
from campaign_driver import command_of, descendants, faults_at, finish, launch, settings, wait_until
from small_campaigns import assert_whole

from chess_snn.campaign.stages import training_program
from chess_snn.data import read_manifest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(900)]

SETTINGS = settings(
    campaign__iterations=1,
    campaign__seed=7,
    self_play__games_per_iteration=16,
    self_play__games_per_shard=8,
    self_play__max_plies_first=40,
    self_play__max_plies_last=40,
    search__simulations_first=2,
    search__simulations_last=2,
    training__batch_size=64,
    training__micro_batch=32,
    training__presentations=20.0,
    evaluation__opponents='["random"]',
    evaluation__num_openings=2,
    evaluation__won_positions=2,
    execution__workers=2,
    execution__training_ranks=2,
    execution__device="cpu",
)


CONSOLE_LEVEL = "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"
RETRIED = re.compile(r"rank \d \(process \d+\) was killed by SIGKILL.* Retry 1/2")


def ranks_of(process) -> list[psutil.Process]:
    return [
        child for child in descendants(process)
        if training_program.__name__ in command_of(child)
    ]


@pytest.mark.fault(7)
def test_a_killed_rank_is_named_and_costs_one_try_of_the_training_task(tmp_path: Path) -> None:
    digests = []
    for name in ("undisturbed", "killed"):
        path, log, fired = tmp_path / name, tmp_path / f"{name}.log", tmp_path / f"{name}-fired"
        environment = {CONSOLE_LEVEL: "INFO"}  # of Prefect, which tells of tries
        if name == "killed":
            environment |= faults_at(fired, training__begins="hold")
        process = launch("start", "--dir", str(path), *SETTINGS, log=log, environment=environment)
        if name == "killed":
            wait_until((fired / "training.begins").exists, process, log)  # and the others wait
            wait_until(lambda: len(ranks_of(process)) == 2, process, log)  # noqa: B023
            ranks_of(process)[1].kill()
        finish(process, log)
        assert len(RETRIED.findall(log.read_text())) == (name == "killed")
        folder = assert_whole(path)
        manifest = read_manifest(folder.checkpoint(1))
        assert manifest.meta["shares"] == [1, 1]
        digests.append(manifest.meta["weights_digest"])
    assert digests[0] == digests[1]
