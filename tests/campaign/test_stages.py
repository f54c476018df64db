"""A whole small campaign by its stages: idempotent, and the same wherever and however it is run."""

import json
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest
from tiny_campaign import TINY

from chess_snn.campaign import (
    CampaignFolder,
    Receipt,
    load_config,
    read_receipt,
    read_receipts,
    write_receipt,
)
from chess_snn.campaign.receipts import ShardFacts, StageSeconds, TrainingFacts
from chess_snn.campaign.stages import (
    choose_champion,
    play_evaluation_match,
    play_shard,
    prepare_first_generation,
    train_generation,
    window_shards,
)
from chess_snn.data import GameRecords, read_manifest, read_shard
from chess_snn.errors import CorruptDataError
from chess_snn.types import Json

NUM_SHARDS = 2
NUM_ITERATIONS = 2


@dataclass(frozen=True)
class Played:
    folder: CampaignFolder
    receipts: list[Receipt]


def play_stages(path: Path, *, num_threads: int, shard_order: list[int]) -> Played:
    folder = CampaignFolder.create(path, load_config(settings=TINY))
    prepare_first_generation(folder)
    receipts = []
    for iteration in range(NUM_ITERATIONS):
        facts = {
            shard: play_shard(path, iteration, shard, num_threads=num_threads)
            for shard in shard_order
        }
        training = train_generation(path, iteration)
        match = play_evaluation_match(path, iteration + 1, "random", num_threads=num_threads)
        receipts.append(Receipt(
            iteration, [facts[shard] for shard in range(NUM_SHARDS)], training, [match],
            match["score"], iteration + 1, StageSeconds(1.0, 2.0, 3.0),
        ))
    return Played(folder, receipts)


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Played:
    path = tmp_path_factory.mktemp("one") / "campaign"
    return play_stages(path, num_threads=1, shard_order=[0, 1])


@pytest.fixture(scope="module")
def played_otherwise(tmp_path_factory) -> Played:
    path = tmp_path_factory.mktemp("other") / "elsewhere"
    return play_stages(path, num_threads=2, shard_order=[1, 0])


def mtimes(folder: CampaignFolder) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")}


def test_every_stage_done_again_returns_the_same_and_writes_nothing(played):
    folder, before = played.folder, mtimes(played.folder)
    prepare_first_generation(folder)
    for iteration, receipt in enumerate(played.receipts):
        assert [
            play_shard(folder.path, iteration, shard) for shard in range(NUM_SHARDS)
        ] == receipt.shards
        assert train_generation(folder.path, iteration) == receipt.training
        assert [play_evaluation_match(folder.path, iteration + 1, "random")] == receipt.matches
    assert mtimes(folder) == before


def test_neither_place_nor_threads_nor_order_change_the_games_and_weights(played, played_otherwise):
    for iteration in range(NUM_ITERATIONS):
        for shard in range(NUM_SHARDS):
            first, _ = read_shard(played.folder.shard(iteration, shard))
            second, _ = read_shard(played_otherwise.folder.shard(iteration, shard))
            for column in fields(GameRecords):
                np.testing.assert_array_equal(
                    getattr(first, column.name), getattr(second, column.name), column.name
                )
    digests = [
        [read_manifest(p.folder.checkpoint(g)).meta["weights_digest"]
         for g in range(NUM_ITERATIONS + 1)]
        for p in (played, played_otherwise)
    ]
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == NUM_ITERATIONS + 1, "training changes the weights"


def test_shards_differ_from_one_another(played):
    first, second = (read_shard(played.folder.shard(0, shard))[0] for shard in range(NUM_SHARDS))
    assert (first.num_games, second.num_games) == (4, 2)
    size = second.num_positions
    assert not np.array_equal(first.actions[:size], second.actions)


def test_the_window_takes_the_newest_shards_until_it_is_full(played, tmp_path):
    folder = played.folder
    names = [f"iter-{i:06d}/shard-{s:04d}" for i in range(2) for s in range(NUM_SHARDS)]
    assert played.receipts[1].training.window_shards == names
    assert played.receipts[0].training.window_shards == names[:2]

    narrow = load_config(settings=[*TINY, "training.window_positions=8"])
    one_iteration = CampaignFolder(folder.path, folder.campaign_id, narrow)
    assert window_shards(one_iteration, 1) == [folder.shard(1, s) for s in range(NUM_SHARDS)]


def test_receipts_are_read_as_they_were_written(played):
    assert read_receipts(played.folder) == []
    try:
        for receipt in played.receipts:
            write_receipt(played.folder, receipt)
        assert read_receipts(played.folder) == played.receipts
        metrics = played.receipts[0].metrics()
        assert metrics["self_play/games"] == 6
        assert metrics["self_play/games_per_s"] == 6.0
        assert metrics["evaluation/score_random"] == played.receipts[0].score
        assert metrics["seconds/evaluation"] == 3.0
    finally:
        for iteration in range(NUM_ITERATIONS):
            played.folder.receipt(iteration).unlink()


@pytest.mark.parametrize("damage", [
    lambda body: body | {"schema": 2},
    lambda body: body | {"iteration": 1},
    lambda body: body | {"extra": 1},
    lambda body: {name: value for name, value in body.items() if name != "score"},
    lambda body: body | {"shards": 3},
    lambda body: body | {"shards": []},
    lambda body: body | {"shards": [body["shards"][0] | {"statistics": {}}]},
    lambda body: body | {"training": {}},
    lambda body: body | {"matches": [{}]},
])
def test_a_damaged_receipt_is_named(played, new_folder, damage):
    folder = new_folder()
    write_receipt(folder, played.receipts[0])
    body: Json = json.loads(folder.receipt(0).read_text())
    folder.receipt(0).write_text(json.dumps(damage(body)))
    with pytest.raises(CorruptDataError, match=r"iter-000000\.json"):
        read_receipt(folder, 0)


def test_a_receipt_without_its_predecessor_is_not_counted(played, new_folder):
    folder = new_folder()
    write_receipt(folder, played.receipts[1])
    assert read_receipts(folder) == []


@pytest.mark.parametrize(("score", "champion", "margin", "chosen"), [
    (0.1, None, 0.5, 7),  # somebody has to be it
    (0.5, (3, 0.5), 0.0, 7),
    (0.49, (3, 0.5), 0.0, 3),
    (0.54, (3, 0.5), 0.05, 3),
    (0.56, (3, 0.5), 0.05, 7),
    (0.4, (3, 0.5), -0.2, 7),
])
def test_the_champion_is_replaced_by_a_better_candidate(score, champion, margin, chosen):
    assert choose_champion(score, 7, champion, margin) == chosen


def test_facts_of_a_committed_shard_name_it(played):
    shard = played.receipts[0].shards[1]
    assert isinstance(shard, ShardFacts)
    assert shard.name == "iter-000000/shard-0001"
    assert shard.bytes > 0
    assert isinstance(played.receipts[0].training, TrainingFacts)
