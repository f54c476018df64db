"""The smallest campaign that still has two iterations and a short last shard."""

TINY = (
    "campaign.iterations=2", "self_play.games_per_iteration=6", "self_play.games_per_shard=4",
    "self_play.max_plies=6", "training.batch_size=8", "evaluation.num_openings=1",
    "evaluation.max_plies=6", 'evaluation.opponents=["random"]',
)
