"""A campaign that runs for many iterations holds no more memory for it, in any of its processes."""

import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(3000)]
psutil = pytest.importorskip("psutil")
pytest.importorskip("prefect")

from chess_snn.campaign import CampaignFolder  # noqa: E402
from chess_snn.campaign.store.receipts import num_finished_iterations  # noqa: E402

ITERATIONS = 100
SETTLED = 40
"""Iterations after which caches, pools and compiled kernels are there."""
EVERY = 10
SETTINGS = (
    f"campaign.iterations={ITERATIONS}", "execution.workers=2", "net.size=tiny",
    "self_play.games_per_iteration=8", "self_play.games_per_shard=4",
    "self_play.max_plies_first=8", "self_play.max_plies_last=8", "search.simulations_first=2",
    "search.simulations_last=2", "training.batch_size=32", "training.window_positions=1000",
    "training.window_growth=0.0", "evaluation.every=20", "evaluation.num_openings=1",
    "evaluation.max_plies=6", 'evaluation.opponents=["random"]', "evaluation.won_positions=2",
    "evaluation.final_openings=0", 'promotion.rule="score"',
)
MOST_GROWTH_MIB = {"campaign": 60.0, "worker": 30.0, "server": 60.0}
"""Growth of a process, over the 60 iterations after it has settled."""
MIB = 2**20


def kind_of(process) -> str | None:
    """Part of a campaign that a process is; None if it only starts others."""
    words = " ".join(process.cmdline())
    if "campaign start" in words:
        return "campaign"
    if "chess_snn.flows.prefect_app" in words:
        return "server"
    return "worker" if "spawn_main" in words else None


def held_mib(campaign) -> dict[str, float]:
    """The most memory that a process of each kind holds of its own."""
    held: dict[str, float] = defaultdict(float)
    for process in [campaign, *campaign.children(recursive=True)]:
        try:
            kind, mib = kind_of(process), process.memory_full_info().uss / MIB
        except psutil.NoSuchProcess:
            continue
        if kind is not None:
            held[kind] = max(held[kind], mib)
    return dict(held)


def test_memory_is_flat_over_100_iterations_of_a_campaign(tmp_path: Path) -> None:
    directory = tmp_path / "campaign"
    command = [str(Path(sys.executable).with_name("chess-snn")), "campaign", "start",
               "--dir", str(directory), *(f"--set={setting}" for setting in SETTINGS)]
    log = tmp_path / "log"
    rows: dict[int, dict[str, float]] = {}
    with log.open("wb") as output, subprocess.Popen(
        command, stdout=output, stderr=subprocess.STDOUT
    ) as campaign:
        process = psutil.Process(campaign.pid)
        try:
            while campaign.poll() is None:
                finished = finished_iterations(directory)
                if finished % EVERY == 0 and finished and finished not in rows:
                    rows[finished] = held_mib(process)
                    print(finished, rows[finished], flush=True)
                time.sleep(0.2)
        finally:
            campaign.terminate()
    assert campaign.returncode == 0, log.read_text()[-3000:]
    settled = rows[SETTLED]
    last = rows[max(rows)]
    assert max(rows) >= ITERATIONS - EVERY
    assert settled.keys() == MOST_GROWTH_MIB.keys()
    for kind, most in MOST_GROWTH_MIB.items():
        assert last[kind] - settled[kind] < most, rows


def finished_iterations(directory: Path) -> int:
    if not (directory / "campaign.toml").exists():
        return 0
    return num_finished_iterations(CampaignFolder.open(directory))
