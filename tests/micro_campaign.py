"""Whole campaigns of a few games with a network of 6,000 parameters: seconds, and under 200 KB.

Every stage is the real one, called in order; only the network that goes by the name of ``tiny`` is
smaller while the block of :func:`micro_networks` lasts.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from chess_snn.campaign import CampaignFolder, Receipt, load_config, write_receipt
from chess_snn.campaign.integrity.rebuild import Rebuilder
from chess_snn.campaign.stages import play_shard, prepare_first_generation, train_generation
from chess_snn.campaign.store.plans import begin_iteration, num_shards
from chess_snn.campaign.store.receipts import PromotionFacts, StageSeconds
from chess_snn.campaign.strength.champions import choose_champion
from chess_snn.campaign.strength.gate import decide, finish_gate, gate_match, next_parts
from chess_snn.campaign.strength.matches import (
    ScheduledMatch,
    converts,
    final_matches,
    finish_match,
    generation_matches,
    play_match_part,
)
from chess_snn.campaign.strength.ratings import rate_campaign, rating_of
from chess_snn.campaign.strength.reports import play_conversion
from chess_snn.nets.config import SIZES, NetConfig
from chess_snn.types import Json

MICRO = NetConfig(blocks=1, channels=8, ticks=2, value_channels=2, value_hidden=8)

SETTINGS = (
    "campaign.iterations=2", "campaign.seed=3", "net.size=tiny", "net.precision=fp32",
    "self_play.games_per_iteration=6", "self_play.games_per_shard=3",
    "self_play.max_plies_first=18", "self_play.max_plies_last=18",
    "self_play.practice_share_first=0.3", "self_play.restart_share_last=0.5",
    "self_play.mismatch_share_first=0.2", "self_play.mismatch_plies=10",
    "search.simulations_first=2", "search.simulations_last=2", "training.batch_size=8",
    'evaluation.opponents=["random"]', "evaluation.num_openings=1", "evaluation.max_plies=8",
    "evaluation.won_positions=1", "evaluation.final_openings=1", "evaluation.final_simulations=2",
    "promotion.rule=score",
)
"""Two iterations of two shards; positions of the first are restarted from in the second."""


SETTINGS_2048 = (
    "campaign.iterations=2", "campaign.seed=3", 'campaign.game="2048"', "net.size=tiny",
    "net.precision=fp32", "self_play.games_per_iteration=6", "self_play.games_per_shard=3",
    "self_play.max_plies_first=40", "self_play.max_plies_last=40",
    "self_play.random_start_plies=0", "self_play.practice_share_first=0.0",
    "self_play.practice_share_last=0.0", "self_play.restart_share_last=0.5",
    "search.simulations_first=4", "search.simulations_last=4", "training.batch_size=16",
    "training.td_lambda=0.7", "training.presentations=1.0",
    'evaluation.opponents=["random", "expectimax:1"]', 'evaluation.openings="random"',
    "evaluation.num_openings=3", "evaluation.max_plies=50", "evaluation.simulations=4",
    "evaluation.final_openings=2", "evaluation.final_simulations=8", "promotion.max_openings=4",
    "promotion.openings_each=2",
)
"""The same for 2048: games of 40 moves at most."""


SMALLEST_NETWORK = (
    "net.blocks=1", "net.channels=4", "net.value_channels=1", "net.value_hidden=4",
    "net.precision=int8", "training.precision=fp32",
)
"""Of 2,000 parameters. Unlike that of :func:`micro_networks` a campaign remembers it, and spikes
are summed as integers."""


@contextmanager
def micro_networks() -> Iterator[None]:
    """Make networks of MICRO for the length of the block."""
    with patch.dict(SIZES, tiny=MICRO):
        yield


def play_campaign(
    path: Path, *changes: str, settings: Sequence[str] = SETTINGS
) -> CampaignFolder:
    """Play a campaign to its end; in the block of :func:`micro_networks`."""
    folder = CampaignFolder.create(path, load_config(settings=[*settings, *changes]))
    prepare_first_generation(folder)
    for iteration in range(folder.config.campaign.iterations):
        play_iteration(folder, iteration)
    for match in final_matches(folder):
        play_match(folder, match)
    return folder


def play_first_games(folder: CampaignFolder) -> None:
    """Make generation 0, and play the games of iteration 0; it has not trained then."""
    prepare_first_generation(folder)
    assert begin_iteration(folder, 0, elapsed_s=0.0) is not None
    for shard in range(num_shards(folder, 0)):
        play_shard(folder.path, 0, shard)


def play_iteration(folder: CampaignFolder, iteration: int) -> Receipt:
    """All of one iteration, up to its receipt."""
    plan = begin_iteration(folder, iteration, elapsed_s=10.0 * iteration)
    assert plan is not None
    shards = [
        play_shard(folder.path, iteration, shard)
        for shard in range(num_shards(folder, iteration))
    ]
    training = train_generation(folder.path, iteration)
    generation = iteration + 1
    matches = [play_match(folder, match) for match in generation_matches(folder, generation)]
    conversion = play_conversion(folder.path, generation) if converts(folder) else None
    gate = gate_match(folder, generation)
    promotion = None if gate is None else play_gate(folder, gate)
    score = matches[0]["score"]
    receipt = Receipt(
        iteration=iteration, plan=plan, shards=shards, training=training, matches=matches,
        conversion=conversion, score=score,
        champion=choose_champion(folder, iteration, score, promotion), promotion=promotion,
        seconds=StageSeconds(1.0, 2.0, 3.0, 0.5, 6.0), elapsed_s=10.0 * generation,
        rating=rating_of(
            rate_campaign(folder, generation), generation, folder.config.evaluation.simulations
        ),
    )
    write_receipt(folder, receipt)
    return receipt


def play_gate(folder: CampaignFolder, match: ScheduledMatch) -> PromotionFacts:
    while parts := next_parts(folder, match, most=1):
        play_match_part(folder.path, match, *parts)
    return decide(folder.config, finish_gate(folder.path, match), None)


def play_match(folder: CampaignFolder, match: ScheduledMatch) -> Json:
    for part in range(len(match.parts)):
        play_match_part(folder.path, match, part)
    return finish_match(folder.path, match)


def stage_rebuilder(folder: CampaignFolder, told: list[str]) -> Rebuilder:
    """A rebuilder that works in this process; what it logs is appended to ``told``."""
    return Rebuilder(folder, told.append)
