"""The games of an iteration are the same however many shards they are divided into."""

from pathlib import Path

import pytest
from small_campaigns import MICRO, assert_same_records

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.stages import play_shard, prepare_first_generation, train_generation
from chess_snn.campaign.stages.window import iteration_shards, window_shards
from chess_snn.campaign.store.plans import begin_iteration, games_of_shard, num_shards, read_plan
from chess_snn.data import GameRecords, ReplayWindow, concatenate, read_manifest, read_shard
from chess_snn.games import get_game
from chess_snn.training import load_trainer

GAME = get_game("chess")
GAMES = 14


def play(path: Path, num_workers: int, precision: str) -> CampaignFolder:
    folder = CampaignFolder.create(path, load_config(settings=[
        *MICRO, f"self_play.games_per_iteration={GAMES}",
        f"self_play.games_per_shard={GAMES}", f"net.precision={precision}",
        "training.presentations=0.3", "self_play.mismatch_policy_share=0.5",
    ]))
    prepare_first_generation(folder)
    for iteration in range(2):
        begin_iteration(folder, iteration, 0.0, num_workers)
        for shard in range(num_shards(folder, iteration)):
            play_shard(path, iteration, shard)
        train_generation(path, iteration)
    return folder


def records_of(folder: CampaignFolder, iteration: int) -> GameRecords:
    return concatenate([read_shard(shard)[0] for shard in iteration_shards(folder, iteration)])


@pytest.mark.parametrize("precision", [pytest.param("fp32", marks=pytest.mark.slow), "int8"])
def test_games_and_weights_do_not_depend_on_the_shards(tmp_path, precision):
    one, three = play(tmp_path / "1", 1, precision), play(tmp_path / "3", 3, precision)
    sizes = [games_of_shard(three, 1, shard).num_games for shard in range(3)]
    assert sorted(sizes) == [4, 5, 5]
    assert (num_shards(one, 1), num_shards(three, 1)) == (1, 3)
    windows = []
    for folder in (one, three):
        window = ReplayWindow.load(GAME, window_shards(folder, 1), 100_000, 4)
        assert 0 < len(window.rows("holdout")) < window.records.num_positions
        windows.append(window.digest())
    assert windows[0] == windows[1]
    for iteration in range(2):
        assert_same_records(records_of(three, iteration), records_of(one, iteration))
    digests = {
        str(read_manifest(folder.checkpoint(2)).meta["weights_digest"]) for folder in (one, three)
    }
    assert len(digests) == 1
    assert load_trainer(three.checkpoint(2), GAME).steps_done > 0


def test_an_iteration_keeps_its_shards_when_workers_come_and_go(new_folder):
    folder = new_folder("c", "self_play.games_per_iteration=400", "self_play.games_per_shard=100")
    assert begin_iteration(folder, 0, 0.0, num_workers=2).num_shards == 4
    assert begin_iteration(folder, 0, 0.0, num_workers=8) == read_plan(folder, 0)
    assert begin_iteration(folder, 1, 0.0, num_workers=7).num_shards == 7
    games = [games_of_shard(folder, 1, shard) for shard in range(7)]
    assert [game.first_game for game in games] == [0, 57, 114, 171, 228, 285, 342]
    assert sum(game.num_games for game in games) == 400
    assert len({game.seed for game in games}) == 1


def test_a_lost_plan_is_made_again_for_the_shards_that_are_there(tmp_path):
    folder = CampaignFolder.create(tmp_path / "c", load_config(settings=MICRO))
    prepare_first_generation(folder)
    plan = begin_iteration(folder, 0, 0.0, num_workers=3)
    assert plan.num_shards == 3
    play_shard(folder.path, 0, 1)
    folder.plan(0).unlink()
    assert begin_iteration(folder, 0, 0.0, num_workers=1) == plan
