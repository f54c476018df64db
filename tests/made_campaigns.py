"""Campaign folders in any state, put there by the library's own functions; nothing is played."""

from pathlib import Path

from chess_snn.campaign import CampaignFolder, Receipt, load_config, write_receipt
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.campaign.store.receipts import ShardFacts, StageSeconds, TrainingFacts
from chess_snn.campaign.strength.matches import CONVERSION, event_of
from chess_snn.data import staged_folder, write_json
from chess_snn.data.commit import commit_archive
from chess_snn.types import Json

SETTINGS = (
    "campaign.iterations=4", "self_play.games_per_iteration=200", "self_play.games_per_shard=100",
    'evaluation.opponents=["random", "minimax:2"]', "evaluation.num_openings=10",
    "evaluation.won_positions=8", "evaluation.every=2",
)
"""Two shards an iteration; a generation that is evaluated plays 3 matches of 20 games."""

ITERATION_S = 100.0
"""Every iteration takes as long."""


def make_campaign(path: Path, *changes: str) -> CampaignFolder:
    return CampaignFolder.create(path, load_config(settings=[*SETTINGS, *changes]))


def begin(folder: CampaignFolder, iteration: int) -> None:
    """Commit its plan, as if it began right after the one before."""
    assert begin_iteration(folder, iteration, ITERATION_S * iteration) is not None


def commit(path: Path) -> None:
    """An empty folder, committed."""
    with staged_folder(path) as stage:
        stage.commit("test", {})


def play_shards(folder: CampaignFolder, iteration: int, count: int = 2) -> None:
    for shard in range(count):
        commit_archive(folder.shard(iteration, shard), {}, "test", {})


def evaluate(folder: CampaignFolder, generation: int) -> None:
    for match in summaries(generation):
        write_json(folder.match(event_of(generation), match["name"]), match)
    write_json(folder.match(event_of(generation), CONVERSION), {"rate": 0.75})


def finish(folder: CampaignFolder, iteration: int) -> Receipt:
    """Commit the plan, the receipt and all in between."""
    begin(folder, iteration)
    play_shards(folder, iteration)
    commit(folder.checkpoint(iteration + 1))
    receipt = receipt_of(folder, iteration)
    if receipt.matches:
        evaluate(folder, iteration + 1)
    write_receipt(folder, receipt)
    return receipt


def receipt_of(folder: CampaignFolder, iteration: int) -> Receipt:
    generation = iteration + 1
    plan = begin_iteration(folder, iteration, ITERATION_S * iteration)
    is_evaluated = generation % folder.config.evaluation.every == 0
    return Receipt(
        iteration=iteration,
        plan=plan,
        shards=[
            ShardFacts(f"iter-{iteration:06d}/shard-{shard:04d}", 1000, statistics(iteration))
            for shard in range(2)
        ],
        training=TrainingFacts(generation, "digest", [], 50_000, training_metrics(iteration)),
        matches=summaries(generation) if is_evaluated else [],
        conversion={"rate": 0.75} if is_evaluated else None,
        score=0.5 + 0.05 * iteration if is_evaluated else None,
        champion=generation,
        seconds=StageSeconds(50.0, 30.0, 20.0 if is_evaluated else 0.0, 5.0, ITERATION_S),
        elapsed_s=ITERATION_S * generation,
    )


def statistics(iteration: int) -> Json:
    """Of 100 games."""
    return {
        "games": 100, "positions": 8000 + 100 * iteration, "plies_min": 10, "plies_max": 150,
        "white_wins": 30, "black_wins": 20, "terminations": {"checkmate": 50, "ply_cap": 50},
        "ordinary_games": 80, "ordinary_draws": 40, "ordinary_positions": 7000,
        "practice_games": 20, "practice_wins": 10, "abs_value_sum": 4000.0,
        "surprise_sum": 900.0, "entropy_sum": 15_000.0, "uniform_entropy_sum": 16_000.0,
        "seconds": 40.0, "network_seconds": 30.0,
    }


def training_metrics(iteration: int) -> dict[str, float]:
    return {
        "steps": 200.0, "samples": 51_200.0, "value_loss": 0.9 - 0.01 * iteration,
        "policy_loss": 3.0 - 0.1 * iteration, "plies_left_loss": 0.3, "policy_entropy": 2.9,
        "gradient_norm": 0.2, "learning_rate": 0.01, "samples_per_s": 1700.0,
        "holdout_value_loss": 1.0, "holdout_value_loss_after": 0.95 - 0.01 * iteration,
    }


def summaries(generation: int) -> list[Json]:
    """Of 20 games each."""
    return [
        {
            "name": name, "player_a": event_of(generation), "player_b": name, "num_games": 20,
            "wins": wins, "draws": 5, "losses": 14 - wins, "capped": 1, "score": score,
            "score_low": score - 0.1, "score_high": score + 0.1,
        }
        for name, wins, score in (
            ("random", 14, 0.85), ("minimax:2", 2, 0.25), ("earlier", 8, 0.55),
        )
    ]
