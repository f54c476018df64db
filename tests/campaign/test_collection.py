"""Folders of games that others may have written: what is none of chess is named."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_games import plain_records

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.store.collection import GameCollection, GameFilter, open_collection
from chess_snn.campaign.viewing.recorded_games import collection_figures
from chess_snn.data import GameRecords, write_shard
from chess_snn.errors import CorruptDataError, UsageError

NUM_GAMES = 2


def campaign_of(path: Path, records: GameRecords, **meta: object) -> Path:
    folder = CampaignFolder.create(path, load_config("smoke"))
    noted = {"game": "chess", "iteration": 0, "shard": 0, "generation": 0}
    write_shard(folder.shard(0, 0), plain_records([1, 1]), noted)
    write_shard(folder.shard(1, 0), records, noted | {"iteration": 1} | meta)
    return folder.path


READERS: dict[str, Callable[[GameCollection], object]] = {
    "games": lambda collection: list(collection.games(GameFilter())),
    "game": lambda collection: collection.game(NUM_GAMES + 1),
    "figures": collection_figures,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize(("column", "code"), [
    ("terminations", 200), ("terminations", 6), ("actions", 4672), ("target_actions", 32_767),
])
def test_codes_that_chess_does_not_have_are_named_bug(tmp_path, column, code, read):
    records = plain_records([1, 1])
    getattr(records, column)[-1] = code
    collection = open_collection(campaign_of(tmp_path / "c", records))
    message = f"iter-000001/shard-0000: {column} must be < .*, found {code}"
    with pytest.raises(CorruptDataError, match=message):
        read(collection)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize(("game", "words"), [("go", 5), ("chess", 3)])
def test_games_of_another_game_are_named_bug(tmp_path, game, words, read):
    records = plain_records([1, 1], words)
    collection = open_collection(campaign_of(tmp_path / "c", records, game=game))
    with pytest.raises(UsageError, match=f"holds {game} records of {words} words"):
        read(collection)


@pytest.mark.parametrize("name", ["iteration", "generation"])
@pytest.mark.parametrize("value", ["1", 1.5, True, [1]])
def test_numbers_that_are_none_are_named_bug(tmp_path, name, value):
    path = campaign_of(tmp_path / "c", plain_records([1, 1]), **{name: value})
    with pytest.raises(CorruptDataError, match=f"{name} must be a whole number, found "):
        open_collection(path)


def test_all_games_are_read_where_they_are_of_chess(tmp_path):
    won = replace(plain_records([1, 1]), outcomes_white=np.array([1, -1], np.int8))
    collection = open_collection(campaign_of(tmp_path / "c", won))
    assert [game.number for game in collection.games(GameFilter(iterations=range(1, 2)))] == [3, 4]
    assert collection_figures(collection)["results"] == {"white": 1, "draw": 2, "black": 1}
