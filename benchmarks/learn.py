"""Train from scratch for some minutes in one process, then play matches.

Needs neither Prefect, Dask nor MLflow, so it runs on machines that have torch and little else.
"""

from pathlib import Path
from typing import Annotated

import torch
import typer

from benchmarks.harness import Report, benchmark
from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.stages import play_shard, prepare_first_generation, train_generation
from chess_snn.campaign.store.plans import CampaignClock, begin_iteration, num_shards
from chess_snn.campaign.strength.match_schedule import ScheduledMatch
from chess_snn.campaign.strength.matches import finish_match, play_match_part


def run(
    report: Report,
    out: Annotated[Path, typer.Option(help="Folder of the campaign; missing or empty.")],
    minutes: Annotated[float, typer.Option(help="How long to train.")] = 9.0,
    preset: Annotated[str | None, typer.Option(help="[default: gpu with a GPU, else cpu]")] = None,
) -> None:
    """Train for some minutes without Prefect, then play matches."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = load_config(preset or ("gpu" if device == "cuda" else "cpu"), settings=[
        f"campaign.hours={minutes / 60}", f'execution.device="{device}"',
        "evaluation.final_openings=100",
    ])
    folder = CampaignFolder.create(out, config)
    prepare_first_generation(folder)
    clock, iteration = CampaignClock(0.0), 0
    while plan := begin_iteration(folder, iteration, clock.elapsed_s):
        shards = [play_shard(folder.path, iteration, shard)
                  for shard in range(num_shards(folder, iteration))]
        facts = train_generation(folder.path, iteration)
        iteration += 1
        report.note(
            f"{clock.elapsed_s:5.0f} s, {plan.progress_last:4.0%}: generation {iteration}, "
            f"{sum(shard.statistics.positions for shard in shards):,} positions, "
            f"policy loss {facts.metrics['policy_loss']:.3f}, "
            f"value loss {facts.metrics['holdout_value_loss']:.3f}"
        )
    for opponent, simulations in (("random", 0), ("random", 64), ("greedy", 64)):
        match = ScheduledMatch(
            "final", f"{opponent}-{simulations}", iteration, opponent, simulations,
            config.evaluation.final_openings,
        )
        for part in range(len(match.parts)):
            play_match_part(folder.path, match, part)
        score = finish_match(folder.path, match).score
        report.add(f"{match.players[0]} against {opponent}, 200 games", score, "score")


command = benchmark("learn", run)
