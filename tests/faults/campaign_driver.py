"""Real campaigns in processes of their own, to be killed and resumed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path

import numpy as np
import psutil

from chess_snn import failpoints
from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.data import (
    GameRecords,
    concatenate,
    is_committed,
    read_manifest,
    read_shard,
    verify_folder,
)

START_TIMEOUT_S = 900.0
FINISH_TIMEOUT_S = 1800.0
"""Of a machine on which many others compute; nothing here is about pace."""
POLL_S = 0.02


def launch(
    *arguments: str, log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Run ``chess-snn campaign ...`` in a process group of its own."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT", "MLFLOW"))}
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "chess_snn", "campaign", *arguments],
            stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env=inherited | dict(environment or {}), start_new_session=True,
        )


def faults_at(folder: Path, **actions: str) -> dict[str, str]:
    """The environment in which processes do ``actions``, once each; a double underscore is a dot.

    Whoever does one leaves a file of the failpoint's name in ``folder``, without its ``@2``.
    """
    folder.mkdir()
    text = ",".join(f"{name.replace('__', '.')}={action}" for name, action in actions.items())
    return {failpoints.VARIABLE: text, failpoints.DIRECTORY_VARIABLE: str(folder)}


def settings(**values: object) -> list[str]:
    """``--set`` options; a double underscore is a dot."""
    return [f"--set={name.replace('__', '.')}={value}" for name, value in values.items()]


def wait_until(
    condition: Callable[[], bool], process: subprocess.Popen[bytes], log: Path,
    within_s: float = START_TIMEOUT_S,
) -> None:
    """Wait for ``condition`` while ``process`` is alive."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert process.poll() is None, f"ended too early:\n{log.read_text()[-3000:]}"
        assert time.monotonic() < deadline, f"waited too long:\n{log.read_text()[-3000:]}"
        time.sleep(POLL_S)


def finish(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for a good end."""
    try:
        process.wait(FINISH_TIMEOUT_S)
    finally:
        if process.poll() is None:
            process.kill()
    assert process.returncode == 0, log.read_text()[-3000:]


def descendants(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Every process that ``process`` has started, directly or not."""
    return psutil.Process(process.pid).children(recursive=True)


def command_of(process: psutil.Process) -> list[str]:
    """What it was started with; nothing where it has ended since it was seen."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def dask_workers(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The worker processes of a running campaign."""
    return [
        child for child in descendants(process)
        if any("multiprocessing" in part and "spawn_main" in part for part in command_of(child))
    ]


def kill_campaign(process: subprocess.Popen[bytes]) -> None:
    """kill -9, and see that everything it had started goes with it."""
    started = descendants(process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert_gone(started)


def assert_gone(processes: list[psutil.Process], within_s: float = 5.0) -> None:
    """No process of the list is left, zombies aside."""
    _, alive = psutil.wait_procs(processes, timeout=within_s)
    left = [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    assert not left, [p.cmdline() for p in left]


def committed_shards(folder: Path, iteration: int) -> list[Path]:
    """Shards of one iteration that are committed."""
    parent = folder / "games" / f"iter-{iteration:06d}"
    return [path for path in sorted(parent.glob("shard-*")) if is_committed(path)]


def assert_whole(path: Path, iterations: int) -> CampaignFolder:
    """Every iteration is finished, every game there once, every digest right."""
    folder = CampaignFolder.open(path)
    receipts = read_receipts(folder)
    assert len(receipts) == iterations
    wanted = folder.config.self_play
    for receipt in receipts:
        shards = committed_shards(path, receipt.iteration)
        assert len(shards) == len(receipt.shards) == receipt.plan.num_shards
        games = [read_shard(shard)[0].num_games for shard in shards]
        assert sum(games) == receipt.statistics.games == wanted.games_per_iteration
        verify_folder(folder.checkpoint(receipt.training.generation))
    leftovers = [entry for entry in path.rglob(".tmp-*") if "services" not in entry.parts]
    assert leftovers == []
    return folder


def assert_same_campaign(path: Path, undisturbed: Path, iterations: int) -> None:
    """The same games, weights, matches and champions as the campaign in ``undisturbed``."""
    folder, expected = assert_whole(path, iterations), assert_whole(undisturbed, iterations)
    for number in range(iterations):
        games, wanted = (
            concatenate([read_shard(shard)[0] for shard in committed_shards(base, number)])
            for base in (path, undisturbed)
        )
        for column in fields(GameRecords):
            np.testing.assert_array_equal(
                getattr(games, column.name), getattr(wanted, column.name), column.name
            )
    for generation in range(iterations + 1):
        digests = {
            read_manifest(each.checkpoint(generation)).meta["weights_digest"]
            for each in (folder, expected)
        }
        assert len(digests) == 1, f"generation {generation} differs"
    decided, wanted = (
        [(receipt.matches, receipt.champion) for receipt in read_receipts(each)]
        for each in (folder, expected)
    )
    assert decided == wanted


SMALL_ITERATIONS = 2
SMALL = settings(
    campaign__iterations=SMALL_ITERATIONS,
    campaign__seed=11,
    self_play__games_per_iteration=12,
    self_play__games_per_shard=4,
    self_play__max_plies_first=12,
    self_play__max_plies_last=16,
    search__simulations_first=2,
    search__simulations_last=2,
    training__batch_size=32,
    training__presentations=2.0,
    evaluation__opponents='["random"]',
    evaluation__num_openings=2,
    evaluation__max_plies=8,
    evaluation__won_positions=2,
    promotion__max_openings=2,
    promotion__openings_each=1,
    execution__workers=2,
)
"""The smallest campaign that has every stage: shards, training, matches, a gate, receipts."""
