"""Folders of games that others may have written: read, learnt from, or refused by name."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_games import plain_records
from made_imports import GAMES_EACH, fixed_games, make_import
from stored_shards import damage

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.stages import play_shard, prepare_first_generation
from chess_snn.campaign.stages.dataset import find_dataset, fixed_dataset
from chess_snn.campaign.store.collection import GameCollection, GameFilter, open_collection
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.campaign.viewing.recorded_games import collection_figures
from chess_snn.data import GameRecords, write_shard
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.games import get_game

SPEC = get_game("chess").spec


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    return make_import(tmp_path_factory.mktemp("imports") / "some")


def config_with(path, *settings):
    return load_config(settings=[f'supervised.games="{path}"', *settings])


def test_an_import_is_found_whole(imported):
    told = []
    given = find_dataset(imported, SPEC, on_progress=lambda *done: told.append(done))
    assert told == [(1, 2), (2, 2)]
    assert (given.name, given.num_games) == ("some.pgn", 2 * GAMES_EACH)
    assert given.num_positions == sum(shard.num_positions for shard in given.shards) > 400
    assert [shard.path.name for shard in given.shards] == ["shard-000000", "shard-000001"]


def test_two_imports_of_one_file_have_one_digest(imported, tmp_path):
    given = find_dataset(imported, SPEC)
    again = find_dataset(make_import(tmp_path / "again"), SPEC)
    assert given.path != again.path
    assert given.digest == again.digest
    assert re.fullmatch(r"[0-9a-f]{32}", given.digest)
    more = find_dataset(make_import(tmp_path / "more", num_shards=3), SPEC)
    assert more.digest != given.digest


def test_the_games_of_a_campaign_can_be_learnt_from_too(folder):
    prepare_first_generation(folder)
    begin_iteration(folder, 0, 0.0)
    play_shard(folder.path, 0, 0)
    given = find_dataset(folder.path, SPEC)
    assert (given.name, given.num_games) == ("campaign", 3)  # six games in two equal shards


def test_the_configuration_gets_path_and_digest(imported, monkeypatch):
    monkeypatch.chdir(imported.parent)
    fixed = fixed_games(config_with("some"))
    given = find_dataset(imported, SPEC)
    assert fixed.supervised.games == str(imported)
    assert fixed.supervised.digest == given.digest
    assert fixed_games(fixed) == fixed
    assert fixed_dataset(fixed) == given
    assert fixed_games(load_config()) == load_config()


def test_a_damaged_shard_is_named_before_any_work(imported, tmp_path):
    path = tmp_path / "damaged"
    shutil.copytree(imported, path)
    damage(max((path / "games").rglob("shard-*")))
    with pytest.raises(CorruptDataError, match=r"damaged/games/.*/shard-00000"):
        fixed_games(config_with(path))


def test_games_of_another_game_are_refused(tmp_path):
    path = make_import(tmp_path / "go", game="go")
    with pytest.raises(UsageError, match="shard-000001"):
        fixed_games(config_with(path))


def test_an_import_that_was_broken_off_is_refused(tmp_path):
    path = make_import(tmp_path / "half", finished=False)
    with pytest.raises(UsageError, match=r"some\.pgn"):
        fixed_games(config_with(path))


@pytest.mark.parametrize("make", [
    lambda path: None, lambda path: path.mkdir(), lambda path: make_import(path, num_shards=0),
])
def test_a_folder_without_games_is_refused(tmp_path, make):
    make(tmp_path / "nothing")
    with pytest.raises(UsageError, match="nothing"):
        fixed_games(config_with(tmp_path / "nothing"))


def test_other_games_in_the_same_place_are_refused(tmp_path):
    path = make_import(tmp_path / "games")
    fixed = fixed_games(config_with(path))
    shutil.rmtree(path)
    make_import(path, num_shards=3)
    for look in (fixed_dataset, fixed_games):
        with pytest.raises(UsageError, match=fixed.supervised.digest):
            look(fixed)


# Folders of games that others may have written: what is none of chess is named.


NUM_GAMES = 2


def campaign_of(path: Path, records: GameRecords, **meta: object) -> Path:
    folder = CampaignFolder.create(path, load_config("smoke"))
    noted = {"game": "chess", "iteration": 0, "shard": 0, "generation": 0}
    write_shard(folder.shard(0, 0), plain_records([1, 1]), noted)
    write_shard(folder.shard(1, 0), records, noted | {"iteration": 1} | meta)
    return folder.path


READERS: tuple[Callable[[GameCollection], object], ...] = (
    lambda collection: list(collection.games(GameFilter())),
    lambda collection: collection.game(NUM_GAMES + 1),
    collection_figures,
)


@pytest.mark.parametrize(("column", "code"), [
    ("terminations", 200), ("terminations", 6), ("actions", 4672), ("target_actions", 32_767),
])
def test_codes_that_chess_does_not_have_are_named_bug(tmp_path, column, code):
    records = plain_records([1, 1])
    getattr(records, column)[-1] = code
    path = campaign_of(tmp_path / "c", records)
    message = f"iter-000001/shard-0000: {column} .*{code}"
    for read in READERS:
        collection = open_collection(path)
        with pytest.raises(CorruptDataError, match=message):
            read(collection)


@pytest.mark.parametrize(("game", "words"), [("go", 5), ("chess", 3)])
def test_games_of_another_game_are_named_bug(tmp_path, game, words):
    records = plain_records([1, 1], words)
    path = campaign_of(tmp_path / "c", records, game=game)
    for read in READERS:
        collection = open_collection(path)
        with pytest.raises(UsageError, match=f"{game} .* {words}"):
            read(collection)


@pytest.mark.parametrize("name", ["iteration", "generation"])
@pytest.mark.parametrize("value", ["1", True])
def test_numbers_that_are_none_are_named_bug(tmp_path, name, value):
    path = campaign_of(tmp_path / "c", plain_records([1, 1]), **{name: value})
    with pytest.raises(CorruptDataError, match=name):
        open_collection(path)


def test_all_games_are_read_where_they_are_of_chess(tmp_path):
    won = replace(plain_records([1, 1]), outcomes_white=np.array([1, -1], np.int8))
    collection = open_collection(campaign_of(tmp_path / "c", won))
    assert [game.number for game in collection.games(GameFilter(iterations=range(1, 2)))] == [3, 4]
    assert collection_figures(collection)["results"] == {"white": 1, "draw": 2, "black": 1}
