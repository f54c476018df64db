"""A whole small campaign by its stages: idempotent, and the same wherever and however it is run."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from small_campaigns import (
    MICRO,
    assert_same_records,
    make_campaign,
    play_first_games,
    play_iteration,
)

from chess_snn.campaign import (
    CampaignFolder,
    Receipt,
    load_config,
    read_receipt,
    read_receipts,
    write_receipt,
)
from chess_snn.campaign.configuration.loading import config_values, format_toml
from chess_snn.campaign.stages import (
    play_shard,
    prepare_first_generation,
    step_losses,
    train_generation,
    window_shards,
)
from chess_snn.campaign.stages.networks import FROZEN_SETTINGS
from chess_snn.campaign.stages.window import positions_played
from chess_snn.campaign.store.plans import Length, begin_iteration
from chess_snn.campaign.strength.match_schedule import generation_matches
from chess_snn.campaign.strength.matches import finish_match
from chess_snn.campaign.strength.reports import play_conversion
from chess_snn.campaign.viewing.figures import figure_row, metrics_of
from chess_snn.campaign.viewing.results import result_rows
from chess_snn.data import (
    START_KINDS,
    read_manifest,
    read_shard,
    with_digest,
)
from chess_snn.errors import CorruptDataError
from chess_snn.search import SearchSettings
from chess_snn.types import Json

NUM_SHARDS = 2
NUM_ITERATIONS = 2
SETTINGS = (
    *MICRO, "self_play.max_plies_first=6", "self_play.max_plies_last=14",
    "search.simulations_first=2", "search.simulations_last=4",
)


@dataclass(frozen=True)
class Played:
    folder: CampaignFolder
    receipts: list[Receipt]


def play_stages(path: Path, **how: int | Sequence[int]) -> Played:
    folder = make_campaign(path, settings=SETTINGS)
    prepare_first_generation(folder)
    return Played(folder, [play_iteration(folder, i, **how) for i in range(NUM_ITERATIONS)])


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Played:
    return play_stages(tmp_path_factory.mktemp("one") / "campaign")


def mtimes(folder: CampaignFolder) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")}


@pytest.mark.fault(18)
def test_every_stage_done_again_returns_the_same_and_writes_nothing(played):
    folder, before = played.folder, mtimes(played.folder)
    prepare_first_generation(folder)
    for iteration, receipt in enumerate(played.receipts):
        assert [
            play_shard(folder.path, iteration, shard) for shard in range(NUM_SHARDS)
        ] == receipt.shards
        assert train_generation(folder.path, iteration) == receipt.training
        for match in generation_matches(folder, iteration + 1):
            assert finish_match(folder.path, match) in receipt.matches
        assert play_conversion(folder.path, iteration + 1) == receipt.conversion
    assert mtimes(folder) == before


def test_neither_place_nor_order_nor_threads_change_the_games_and_weights(played, tmp_path):
    otherwise = play_stages(tmp_path / "elsewhere", shard_order=[1, 0], num_threads=2)
    for iteration in range(NUM_ITERATIONS):
        for shard in range(NUM_SHARDS):
            assert_same_records(*(
                read_shard(each.folder.shard(iteration, shard))[0]
                for each in (played, otherwise)
            ))
    digests = [
        [read_manifest(p.folder.checkpoint(g)).meta["weights_digest"]
         for g in range(NUM_ITERATIONS + 1)]
        for p in (played, otherwise)
    ]
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == NUM_ITERATIONS + 1, "training changes the weights"


@pytest.mark.slow
def test_the_loss_on_held_out_games_falls(tmp_path):
    config = load_config(settings=[
        *MICRO, "campaign.iterations=1", "net.size=1x16",
        "self_play.games_per_iteration=96", "self_play.games_per_shard=96",
        "self_play.max_plies_first=16", "training.batch_size=64", "training.learning_rate=2e-2",
    ])
    folder = CampaignFolder.create(tmp_path / "learns", config)
    play_first_games(folder)
    metrics = train_generation(folder.path, 0).metrics
    assert metrics["holdout_value_loss_after"] < 0.9 * metrics["holdout_value_loss"]


def test_a_window_grows_with_the_positions_that_were_played_up_to_it(played):
    so_far = np.cumsum([receipt.statistics.positions for receipt in played.receipts])
    counted = [positions_played(played.folder, i) for i in range(len(so_far))]
    assert counted == so_far.tolist()


def test_the_window_takes_the_newest_shards_until_it_is_full(played, tmp_path):
    folder = played.folder
    names = [f"iter-{i:06d}/shard-{s:04d}" for i in range(2) for s in range(NUM_SHARDS)]
    assert played.receipts[1].training.window_shards == names
    assert played.receipts[0].training.window_shards == names[:2]

    narrow = load_config(settings=[
        *SETTINGS, "training.window_positions=8", "training.window_growth=0.0"
    ])
    one_iteration = CampaignFolder(folder.path, folder.campaign_id, narrow)
    assert window_shards(one_iteration, 1) == [folder.shard(1, s) for s in range(NUM_SHARDS)]


def test_receipts_are_read_as_they_were_written(played):
    first, second = played.receipts
    assert read_receipts(played.folder) == [first, second]
    row, other = result_rows(played.folder, played.receipts)
    assert row["games"] == 6
    assert row["score_random"] == first.score
    assert row["score_earlier"] == first.matches[1].score
    assert row["conversion_rate"] == first.conversion.rate
    assert row["evaluation_s"] == 3.0
    assert (row["generation"], other["generation"]) == (1, 2)
    assert (first.share_of(Length(4)), second.share_of(Length(4))) == (0.25, 0.5)
    assert second.share_of(Length(4, hours=1.0)) == second.elapsed_s / 3600
    assert second.share_of(Length(1)) == 1.0


@pytest.mark.parametrize(("times", "playing_s"), [
    (((100.0, 10.0), (100.0, 10.0)), 10.0),  # side by side
    (((100.0, 10.0), (105.0, 10.0)), 15.0),
    (((100.0, 10.0), (102.0, 3.0)), 10.0),
    (((105.0, 10.0), (100.0, 10.0)), 15.0),
    (((100.0, 10.0), (9999.0, 5.0)), 15.0),  # the campaign was resumed between the two
])
def test_shards_that_an_earlier_process_played_made_rates_absurd_bug(played, times, playing_s):
    first = played.receipts[0]
    shards = [
        replace(shard, began_s=began_s, statistics=replace(shard.statistics, seconds=seconds))
        for shard, (began_s, seconds) in zip(first.shards, times, strict=True)
    ]
    receipt = replace(first, shards=shards, seconds=replace(first.seconds, self_play=0.01))
    assert receipt.playing_s == playing_s
    row = figure_row(receipt)
    for name in ("games", "positions"):
        assert row[f"{name}_per_s"] == getattr(receipt.statistics, name) / playing_s


@pytest.mark.parametrize("damage", [
    lambda body: body | {"iteration": 1},
    lambda body: body | {"extra": 1},
    lambda body: {name: value for name, value in body.items() if name != "score"},
    lambda body: body | {"shards": []},
    lambda body: body | {"shards": [body["shards"][0] | {"statistics": {}}]},
])
def test_a_damaged_receipt_is_named(played, folder, damage):
    write_receipt(folder, played.receipts[0])
    body: Json = json.loads(folder.receipt(0).read_text())
    del body["digest"]
    folder.receipt(0).write_text(json.dumps(with_digest(damage(body))))
    with pytest.raises(CorruptDataError, match=r"iter-000000\.json"):
        read_receipt(folder, 0)


def test_a_generation_without_evaluation_has_no_score(played, folder):
    unevaluated = replace(
        played.receipts[0], matches=[], conversion=None, score=None, rating=None
    )
    write_receipt(folder, unevaluated)
    assert read_receipt(folder, 0) == unevaluated
    assert not [
        name for name in metrics_of(folder.config, unevaluated)
        if name.startswith("1_strength/") and "promotion" not in name
    ]


def test_every_trained_generation_keeps_its_losses_by_optimiser_step(played):
    assert step_losses(played.folder, 0) == []
    steps_before = 0.0
    for receipt in played.receipts:
        metrics = receipt.training.metrics
        curve = step_losses(played.folder, receipt.training.generation)
        assert len(curve) == metrics["steps"] < 100
        assert curve[-1]["step"] == steps_before + metrics["steps"]
        assert curve[-1]["learning_rate"] == pytest.approx(metrics["learning_rate"], rel=1e-5)
        mean = sum(point["total"] for point in curve) / len(curve)
        assert metrics["total_loss"] == pytest.approx(mean, rel=1e-4)
        steps_before = curve[-1]["step"]


def test_training_says_how_much_its_network_spikes(played):
    for receipt in played.receipts:
        metrics = receipt.training.metrics
        assert 0 < metrics["spike_rate"] < 0.5
        by_tick = [metrics[f"spike_rate/policy.neurons/tick_{tick}"] for tick in (1, 2)]
        assert metrics["spike_rate/policy.neurons"] == pytest.approx(sum(by_tick) / 2)
        assert "training_spike_rate" not in metrics


def test_the_untrained_policy_is_soft_and_says_so(played):
    meta = read_manifest(played.folder.checkpoint(0)).meta
    assert 0.9 <= meta["entropy_ratio"] <= 1
    assert prepare_first_generation(played.folder) == meta["entropy_ratio"]


def test_every_generation_keeps_the_settings_it_was_made_under(played):
    config = config_values(played.folder.config)
    assert format_toml(config) in (played.folder.path / "campaign.toml").read_text()
    for generation in range(3):
        meta = read_manifest(played.folder.checkpoint(generation)).meta
        assert meta[FROZEN_SETTINGS] == config


def test_games_follow_the_plan_of_their_iteration(played):
    """Half of the campaign is done before the second of two iterations."""
    search = SearchSettings(simulations_first=2, simulations_last=4)
    for iteration, progress in enumerate((0.0, 0.5)):
        shard = played.folder.shard(iteration, 0)
        manifest = read_manifest(shard)
        assert manifest.meta["simulations"] == search.simulations(progress)
        records, _ = read_shard(shard)
        assert np.diff(records.game_offsets).max() == played.folder.config.self_play.max_plies(
            progress
        )


def test_the_second_iteration_restarts_from_games_of_the_first_that_are_read_once_bug(tmp_path):
    """A game of the second iteration begins where a contested game of the first one was."""
    folder = CampaignFolder.create(tmp_path / "c", load_config(settings=[
        *MICRO, "self_play.max_plies_first=30", "self_play.max_plies_last=30",
        "self_play.practice_share_first=0.0", "self_play.practice_share_last=0.0",
        "self_play.mismatch_share_first=0.0",
        "self_play.restart_share_first=1.0", "self_play.restart_share_last=1.0",
        "search.simulations_first=1", "search.simulations_last=1",
    ]))
    prepare_first_generation(folder)
    begin_iteration(folder, 0, 0.0)
    first = [play_shard(folder.path, 0, shard) for shard in range(NUM_SHARDS)]
    assert sum(facts.statistics.ordinary_games for facts in first) == 6
    train_generation(folder.path, 0)
    begin_iteration(folder, 1, 1.0)
    play_shard(folder.path, 1, 0)
    records, _ = read_shard(folder.shard(1, 0))
    assert {START_KINDS[kind] for kind in records.start_kinds} == {"restart"}
    earlier = {
        tuple(row[:4]) for shard in range(NUM_SHARDS)
        for row in read_shard(folder.shard(0, shard))[0].states
    }
    assert all(tuple(row[:4]) in earlier for row in records.states[records.game_offsets[:-1]])
    # A warm worker has read them.
    folder.shard(0, 0).unlink()
    assert play_shard(folder.path, 1, 1).name == "iter-000001/shard-0001"
