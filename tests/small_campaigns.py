"""Campaigns for tests, in three sizes.

- EMPTY: nothing is played; the library's own functions write plans, receipts and empty artifacts.
- MICRO: every stage is the real one, called in order in this process: seconds, and under 200 KB.
- SMALL: for ``chess-snn campaign start`` in processes of its own, with every stage.
"""

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
from signed_files import MATCH, REPORT, write_signed

from chess_snn.campaign import (
    CampaignFolder,
    Receipt,
    load_config,
    read_receipts,
    write_receipt,
)
from chess_snn.campaign.artifacts.artifact import Stored
from chess_snn.campaign.integrity.rebuild import Rebuilder
from chess_snn.campaign.stages import play_shard, prepare_first_generation, train_generation
from chess_snn.campaign.store.match_facts import ConversionFacts, MatchFacts
from chess_snn.campaign.store.plans import begin_iteration, num_shards
from chess_snn.campaign.store.receipt_parts import (
    PromotionFacts,
    ShardFacts,
    StageSeconds,
    TrainingFacts,
)
from chess_snn.campaign.strength.champions import choose_champion
from chess_snn.campaign.strength.gating_match import (
    decide,
    finish_gating_match,
    gating_match_of,
    next_parts,
)
from chess_snn.campaign.strength.match_schedule import (
    CONVERSION,
    ScheduledMatch,
    converts,
    event_of,
    final_matches,
    generation_matches,
)
from chess_snn.campaign.strength.matches import finish_match, play_match_part
from chess_snn.campaign.strength.ratings import rate_campaign, rating_of
from chess_snn.campaign.strength.reports import play_conversion
from chess_snn.data import (
    GameRecords,
    concatenate,
    is_committed,
    read_folder,
    read_manifest,
    read_shard,
    staged_folder,
    verify_folder,
)
from chess_snn.data.commit import commit_archive
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, Network, build_network, save_network
from chess_snn.self_play import SelfPlayStatistics
from chess_snn.training import Trainer, TrainingSettings, save_checkpoint

EMPTY = (
    "campaign.iterations=4", "self_play.games_per_iteration=200", "self_play.games_per_shard=100",
    'evaluation.opponents=["random", "minimax:2"]', "evaluation.num_openings=10",
    "evaluation.won_positions=8", "evaluation.every=2",
)
"""Two shards an iteration; a generation that is evaluated plays 3 matches of 20 games."""

SMALLEST_NETWORK = (
    "net.size=1x4", "net.precision=int8", "training.precision=fp32",
)
"""Network of 35,000 parameters, most of them in the head of the value."""

MICRO = (
    "campaign.iterations=2", "campaign.seed=3", *SMALLEST_NETWORK,
    "self_play.games_per_iteration=6", "self_play.games_per_shard=3",
    "self_play.max_plies_first=18", "self_play.max_plies_last=18",
    "self_play.practice_share_first=0.3", "self_play.restart_share_last=0.5",
    "self_play.mismatch_share_first=0.2",
    "search.simulations_first=2", "search.simulations_last=2", "training.batch_size=8",
    'evaluation.opponents=["random"]', "evaluation.num_openings=1", "evaluation.max_plies=8",
    "evaluation.won_positions=1", "evaluation.final_openings=1", "evaluation.final_simulations=2",
    "promotion.rule=score",
)
"""Two iterations of two shards; positions of the first are restarted from in the second."""

MICRO_2048 = (
    "campaign.iterations=2", "campaign.seed=3", 'campaign.game="2048"', *SMALLEST_NETWORK,
    "self_play.games_per_iteration=6", "self_play.games_per_shard=3",
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

SMALL = (
    "campaign.iterations=2", "campaign.seed=11", "net.size=1x8",
    "self_play.games_per_iteration=12", "self_play.games_per_shard=4",
    "self_play.max_plies_first=12", "self_play.max_plies_last=16",
    "search.simulations_first=2", "search.simulations_last=2",
    "training.batch_size=32", "training.presentations=2.0",
    'evaluation.opponents=["random"]', "evaluation.num_openings=2", "evaluation.max_plies=8",
    "evaluation.won_positions=2", "evaluation.ladder_test=false", "promotion.max_openings=2",
    "promotion.openings_each=1", "execution.workers=2",
)
"""Two iterations of three shards, and a gating match. A ladder test would take half of the time."""

ITERATION_S = 100.0
"""Every iteration of an EMPTY campaign takes as long."""


def make_campaign(
    path: Path, *changes: str, settings: Sequence[str] = EMPTY
) -> CampaignFolder:
    """Create the folder of a campaign, with ``changes`` of its settings."""
    return CampaignFolder.create(path, load_config(settings=[*settings, *changes]))


def small_network(seed: int, game: str = "chess") -> Network:
    return build_network(get_game(game).spec, NetConfig(blocks=1, channels=8), seed)


def make_networks(path: Path, generations: Sequence[int]) -> CampaignFolder:
    """Create a campaign that has trained ``generations``, each made from its number."""
    settings = ("search.kind=puct", "search.exploration=2.5", "net.precision=fp32")
    folder = make_campaign(path, settings=settings)
    for generation in generations:
        trainer = Trainer(
            get_game("chess"), small_network(generation), TrainingSettings(), seed=generation
        )
        save_checkpoint(folder.checkpoint(generation), trainer, {"generation": generation})
    return folder


def make_weights(path: Path, seed: int = 9, game: str = "chess") -> Path:
    """Write a network on its own."""
    save_network(path, small_network(seed, game))
    return path


def copy_generation(folder: CampaignFolder, source: int, target: int) -> None:
    """Commit the network of ``source`` as generation ``target``."""
    manifest, files = read_folder(folder.checkpoint(source))
    with staged_folder(folder.checkpoint(target)) as stage:
        for name, content in files.items():
            (stage.path / name).write_bytes(content)
        stage.commit(manifest.kind, manifest.meta | {"generation": target})


# EMPTY


def begin(folder: CampaignFolder, iteration: int) -> None:
    """Commit its plan, as if it began right after the one before."""
    assert begin_iteration(folder, iteration, ITERATION_S * iteration) is not None


def commit(path: Path) -> None:
    """An empty folder, committed."""
    with staged_folder(path) as stage:
        stage.commit("test", {})


def commit_shards(folder: CampaignFolder, iteration: int, count: int = 2) -> None:
    """Shards without games."""
    for shard in range(count):
        commit_archive(folder.shard(iteration, shard), {}, "test", {})


def evaluate(folder: CampaignFolder, generation: int) -> None:
    for match in matches_of(generation):
        write_signed(folder.match(event_of(generation), match.name), MATCH, asdict(match))
    write_signed(folder.match(event_of(generation), CONVERSION), REPORT, asdict(CONVERTED))


def finish(folder: CampaignFolder, iteration: int) -> Receipt:
    """Commit the plan, the receipt and all in between."""
    begin(folder, iteration)
    commit_shards(folder, iteration)
    commit(folder.checkpoint(iteration + 1))
    receipt = receipt_of(folder, iteration)
    if receipt.matches:
        evaluate(folder, iteration + 1)
    write_receipt(folder, receipt)
    return receipt


CONVERTED = ConversionFacts(24, 4, 0, 4, 30.0, 0.75, 16)


def receipt_of(folder: CampaignFolder, iteration: int) -> Receipt:
    generation = iteration + 1
    plan = begin_iteration(folder, iteration, ITERATION_S * iteration)
    is_evaluated = generation % folder.config.evaluation.every == 0
    return Receipt(
        iteration=iteration,
        plan=plan,
        shards=[
            ShardFacts(
                f"iter-{iteration:06d}/shard-{shard:04d}", 1000, statistics(iteration),
                began_s=10.0 * shard,
            )
            for shard in range(2)
        ],
        training=TrainingFacts(
            generation, weights_digest(folder, generation), [], 50_000, training_metrics(iteration)
        ),
        matches=matches_of(generation) if is_evaluated else [],
        conversion=CONVERTED if is_evaluated else None,
        score=0.5 + 0.05 * iteration if is_evaluated else None,
        champion=generation,
        seconds=StageSeconds(50.0, 30.0, 20.0 if is_evaluated else 0.0, 5.0, ITERATION_S),
        elapsed_s=ITERATION_S * generation,
    )


def finish_without_games(
    folder: CampaignFolder, iteration: int, champion: int, score: float | None = 0.5,
    begun_s: float | None = None, ended_s: float | None = None,
) -> None:
    """Commit plan and receipt of an iteration that names ``champion``."""
    plan = begin_iteration(folder, iteration, float(iteration) if begun_s is None else begun_s)
    write_receipt(folder, Receipt(
        iteration, plan, [ShardFacts("iter/shard", 1, statistics(iteration), 0.0)],
        TrainingFacts(
            iteration + 1, weights_digest(folder, iteration + 1), ["iter/shard"], 1, {"steps": 1.0}
        ),
        [], None, score, champion, StageSeconds(1.0, 1.0, 0.0, 0.0, 2.0),
        float(iteration + 1) if ended_s is None else ended_s,
    ))


def weights_digest(folder: CampaignFolder, generation: int) -> str:
    """Digest of its network, if there is one."""
    path = folder.checkpoint(generation)
    meta = read_manifest(path).meta if is_committed(path) else {}
    return str(meta.get("weights_digest", "digest"))


def statistics(iteration: int) -> SelfPlayStatistics:
    """Counts of 100 games."""
    return SelfPlayStatistics(
        games=100, positions=8000 + 100 * iteration, plies_min=10, plies_max=150,
        white_wins=30, black_wins=20, terminations={"checkmate": 50, "ply_cap": 50},
        ordinary_games=80, ordinary_draws=40, ordinary_positions=7000,
        practice_games=20, practice_wins=10, abs_value_sum=4000.0,
        surprise_sum=900.0, entropy_sum=15_000.0, uniform_entropy_sum=16_000.0,
        seconds=40.0, network_seconds=30.0,
    )


def training_metrics(iteration: int) -> dict[str, float]:
    return {
        "steps": 200.0, "samples": 51_200.0, "value_loss": 0.9 - 0.01 * iteration,
        "policy_loss": 3.0 - 0.1 * iteration, "plies_left_loss": 0.3, "policy_entropy": 2.9,
        "gradient_norm": 0.2, "learning_rate": 0.01, "samples_per_s": 1700.0,
        "holdout_value_loss": 1.0, "holdout_value_loss_after": 0.95 - 0.01 * iteration,
    }


def matches_of(generation: int) -> list[MatchFacts]:
    """Matches of 20 games each."""
    return [
        MatchFacts(
            name=name, game="chess", player_a=event_of(generation), player_b=name, num_games=20,
            wins=wins, draws=5, losses=14 - wins, truncated=1, forfeits_a=0, forfeits_b=0,
            voided=0, score=score, score_low=score - 0.1, score_high=score + 0.1,
            mean_plies=80.0, terminations={"checkmate": 14, "stalemate": 5, "ply_cap": 1},
        )
        for name, wins, score in (
            ("random", 14, 0.85), ("minimax:2", 2, 0.25), ("earlier", 8, 0.55),
        )
    ]


# MICRO


def play_campaign(
    path: Path, *changes: str, settings: Sequence[str] = MICRO
) -> CampaignFolder:
    """Play a campaign to its end."""
    folder = make_campaign(path, *changes, settings=settings)
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


def play_iteration(
    folder: CampaignFolder, iteration: int, *, num_threads: int = 1,
    shard_order: Sequence[int] | None = None,
) -> Receipt:
    """All of one iteration, up to its receipt."""
    plan = begin_iteration(folder, iteration, elapsed_s=10.0 * iteration)
    assert plan is not None
    played = {
        shard: play_shard(folder.path, iteration, shard, num_threads=num_threads)
        for shard in shard_order or range(num_shards(folder, iteration))
    }
    shards = [facts for _, facts in sorted(played.items())]
    training = train_generation(folder.path, iteration)
    generation = iteration + 1
    matches = [
        play_match(folder, match, num_threads) for match in generation_matches(folder, generation)
    ]
    conversion = None
    if converts(folder):
        conversion = play_conversion(folder.path, generation, num_threads=num_threads)
    gating_match = gating_match_of(folder, generation)
    promotion = None if gating_match is None else play_gating_match(folder, gating_match)
    score = matches[0].score
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


def play_gating_match(folder: CampaignFolder, match: ScheduledMatch) -> PromotionFacts:
    while parts := next_parts(folder, match, most=1):
        play_match_part(folder.path, match, *parts)
    return decide(folder.config, finish_gating_match(folder.path, match), None)


def play_match(folder: CampaignFolder, match: ScheduledMatch, num_threads: int = 1) -> MatchFacts:
    for part in range(len(match.parts)):
        play_match_part(folder.path, match, part, num_threads=num_threads)
    return finish_match(folder.path, match)


def stage_rebuilder(folder: CampaignFolder, told: list[str]) -> Rebuilder:
    """A rebuilder that works in this process; what it logs is appended to ``told``."""
    return Rebuilder(folder, told.append)


def idle_rebuilder(folder: CampaignFolder, told: list[str]) -> Rebuilder:
    """One that must not make anything."""

    def refuse(_: CampaignFolder, stored: Stored) -> object:
        raise AssertionError(f"asked to make {stored}")

    return Rebuilder(folder, told.append, refuse, pause_s=0.0)


# SMALL


def committed_shards(folder: Path, iteration: int) -> list[Path]:
    """Shards of one iteration that are committed."""
    parent = folder / "games" / f"iter-{iteration:06d}"
    return [path for path in sorted(parent.glob("shard-*")) if is_committed(path)]


def assert_whole(path: Path) -> CampaignFolder:
    """Every iteration is finished, every game there once, every digest right."""
    folder = CampaignFolder.open(path)
    receipts, wanted = read_receipts(folder), folder.config
    assert len(receipts) == wanted.campaign.iterations
    for receipt in receipts:
        shards = committed_shards(path, receipt.iteration)
        assert len(shards) == len(receipt.shards) == receipt.plan.num_shards
        games = [read_shard(shard)[0].num_games for shard in shards]
        assert sum(games) == receipt.statistics.games == wanted.self_play.games_per_iteration
        verify_folder(folder.checkpoint(receipt.training.generation))
    leftovers = [entry for entry in path.rglob(".tmp-*") if "services" not in entry.parts]
    assert leftovers == []
    return folder


def assert_same_records(found: GameRecords, wanted: GameRecords) -> None:
    """Every column is equal, to the bit."""
    for column in fields(GameRecords):
        np.testing.assert_array_equal(
            getattr(found, column.name), getattr(wanted, column.name), column.name
        )


def assert_same_campaign(path: Path, undisturbed: Path) -> None:
    """The same games, weights, matches and champions as the campaign in ``undisturbed``."""
    folder, expected = assert_whole(path), assert_whole(undisturbed)
    iterations = expected.config.campaign.iterations
    for number in range(iterations):
        assert_same_records(*(
            concatenate([read_shard(shard)[0] for shard in committed_shards(base, number)])
            for base in (path, undisturbed)
        ))
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
