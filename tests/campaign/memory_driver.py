"""Plays a campaign of very many very small iterations, and prints what it holds in memory.

``python memory_driver.py FOLDER ITERATIONS EVERY``: a line of JSON every so many iterations.
"""

import gc
import json
import sys
from pathlib import Path

import torch
from small_campaigns import MICRO

from chess_snn.campaign import CampaignFolder, Receipt, load_config, write_receipt
from chess_snn.campaign.integrity.gc import sweep_leftovers
from chess_snn.campaign.stages import play_shard, prepare_first_generation, train_generation
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.campaign.store.receipts import StageSeconds, metrics_history
from chess_snn.campaign.strength.champions import choose_champion
from chess_snn.campaign.viewing.alarms import find_alarms

SMALL = (
    "self_play.games_per_iteration=2", "self_play.games_per_shard=2",
    "self_play.max_plies_first=12", "self_play.max_plies_last=12", "search.simulations_first=1",
    "search.simulations_last=1", "training.window_positions=200", "training.window_growth=0.0",
    "evaluation.every=1000000", "evaluation.final_openings=0",
)
KIB_PER_MIB = 1024


def resident_mib() -> float:
    """Memory of this process that is not shared with files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kib = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)
           if name == "RssAnon"}
    return kib["RssAnon"] / KIB_PER_MIB


def main(path: Path, iterations: int, every: int) -> None:
    torch.set_num_threads(1)
    folder = CampaignFolder.create(path, load_config(settings=[
        *MICRO, *SMALL, f"campaign.iterations={iterations}"
    ]))
    prepare_first_generation(folder)
    for iteration in range(iterations):
        play(folder, iteration)
        if (iteration + 1) % every == 0:
            gc.collect()
            print(json.dumps({
                "iteration": iteration + 1, "mib": resident_mib(),
                "files": len(list(Path("/proc/self/fd").iterdir())),
                "threads": len(list(Path("/proc/self/task").iterdir())),
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
    find_alarms(metrics_history(folder))
    sweep_leftovers(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
