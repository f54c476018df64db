"""The smallest campaign that still has two iterations, and iterations without games."""

from chess_snn.campaign import CampaignFolder, Receipt, write_receipt
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.campaign.store.receipts import ShardFacts, StageSeconds, TrainingFacts

TINY = (
    "campaign.iterations=2", "self_play.games_per_iteration=6", "self_play.games_per_shard=4",
    "self_play.max_plies_first=6", "self_play.max_plies_last=14", "search.simulations_first=2",
    "search.simulations_last=4", "training.batch_size=8", "evaluation.num_openings=1",
    "evaluation.max_plies=6", 'evaluation.opponents=["random"]', "evaluation.simulations=2",
    "evaluation.won_positions=2",
)
"""Two iterations of two shards."""

STATISTICS = {
    "games": 1, "positions": 1, "plies_min": 1, "plies_max": 1, "white_wins": 0, "black_wins": 0,
    "terminations": {}, "ordinary_games": 1, "ordinary_draws": 1, "ordinary_positions": 1,
    "practice_games": 0, "practice_wins": 0, "abs_value_sum": 0.0, "surprise_sum": 0.0,
    "entropy_sum": 1.0, "uniform_entropy_sum": 1.0, "seconds": 1.0, "network_seconds": 1.0,
}


def finish_iteration(
    folder: CampaignFolder, iteration: int, champion: int, score: float | None = 0.5,
    begun_s: float | None = None, ended_s: float | None = None,
) -> None:
    """Commit plan and receipt of an iteration that has played nothing."""
    plan = begin_iteration(folder, iteration, float(iteration) if begun_s is None else begun_s)
    write_receipt(folder, Receipt(
        iteration, plan, [ShardFacts("iter/shard", 1, STATISTICS)],
        TrainingFacts(iteration + 1, "digest", ["iter/shard"], 1, {"steps": 1.0}),
        [], None, score, champion, StageSeconds(1.0, 1.0, 0.0, 0.0, 2.0),
        float(iteration + 1) if ended_s is None else ended_s,
    ))
