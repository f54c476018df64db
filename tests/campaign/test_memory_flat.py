"""What a campaign holds in memory does not grow with the iterations behind it.

The test runs this file: a campaign of very many very small iterations, which prints a line of JSON
every so many of them.
"""

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch
from small_campaigns import MICRO, make_campaign

from chess_snn.campaign import CampaignFolder, Receipt, write_receipt
from chess_snn.campaign.integrity.gc import sweep_leftovers
from chess_snn.campaign.stages import play_shard, prepare_first_generation, train_generation
from chess_snn.campaign.store.history import ReceiptHistory
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.campaign.store.receipts import StageSeconds
from chess_snn.campaign.strength.champions import choose_champion
from chess_snn.campaign.viewing.alarms import find_alarms

ITERATIONS = 500
EVERY = 50
SETTLED = 150
"""Iterations after which caches, pools and compiled kernels are there."""
MOST_GROWTH_MIB = 16.0
"""Over the 350 iterations after that; metrics that are kept of each of them take 2."""
SMALL = (
    "self_play.games_per_iteration=2", "self_play.games_per_shard=2",
    "self_play.max_plies_first=12", "self_play.max_plies_last=12", "search.simulations_first=1",
    "search.simulations_last=1", "training.window_positions=200", "training.window_growth=0.0",
    "evaluation.every=1000000", "evaluation.final_openings=0", f"campaign.iterations={ITERATIONS}",
)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_memory_is_flat_over_500_iterations(tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    run = subprocess.run(
        [sys.executable, __file__, str(tmp_path / "campaign")],
        capture_output=True, text=True, timeout=3500, check=False,
        env=os.environ | {
            "PYTHONPATH": os.pathsep.join([str(tests.parent), str(tests)]), "OMP_NUM_THREADS": "1",
        },
    )
    assert run.returncode == 0, run.stderr[-3000:]
    rows = {row["iteration"]: row for row in map(json.loads, run.stdout.splitlines())}
    assert len(rows) == ITERATIONS // EVERY
    settled, last = rows[SETTLED], rows[ITERATIONS]
    assert last["mib"] - settled["mib"] < MOST_GROWTH_MIB, run.stdout
    assert last["files"] <= settled["files"] + 2, run.stdout
    assert last["threads"] <= settled["threads"] + 2, run.stdout


def play_iterations(path: Path) -> None:
    torch.set_num_threads(1)
    folder, process = make_campaign(path, *SMALL, settings=MICRO), psutil.Process()
    prepare_first_generation(folder)
    for iteration in range(ITERATIONS):
        play(folder, iteration)
        if (iteration + 1) % EVERY == 0:
            gc.collect()
            memory = process.memory_info()
            print(json.dumps({
                "iteration": iteration + 1, "mib": (memory.rss - memory.shared) / 2**20,
                "files": process.num_fds(), "threads": process.num_threads(),
            }), flush=True)


def play(folder: CampaignFolder, iteration: int) -> None:
    plan = begin_iteration(folder, iteration, float(iteration))
    assert plan is not None
    shards = [play_shard(folder.path, iteration, 0)]
    training = train_generation(folder.path, iteration)
    write_receipt(folder, Receipt(
        iteration=iteration, plan=plan, shards=shards, training=training, matches=[],
        conversion=None, score=None, champion=choose_champion(folder, iteration, None, None),
        seconds=StageSeconds(1.0, 1.0, 0.0, 0.0, 2.0), elapsed_s=iteration + 1.0,
    ))
    find_alarms(ReceiptHistory(folder).metrics())
    sweep_leftovers(folder)


if __name__ == "__main__":
    play_iterations(Path(sys.argv[1]))
