"""The smallest campaign that still has two iterations and a short last shard."""

TINY = (
    "campaign.iterations=2", "self_play.games_per_iteration=6", "self_play.games_per_shard=4",
    "self_play.max_plies_first=6", "self_play.max_plies_last=14", "search.simulations_first=2",
    "search.simulations_last=4", "training.batch_size=8", "evaluation.num_openings=1",
    "evaluation.max_plies=6", 'evaluation.opponents=["random"]', "evaluation.simulations=2",
    "evaluation.won_positions=2",
)
