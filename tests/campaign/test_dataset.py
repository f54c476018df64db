"""Games to learn from are looked at before any work, and known again by their digest."""

import re
import shutil

import pytest
from made_imports import GAMES_EACH, make_import
from stored_shards import damage

from chess_snn.campaign import load_config
from chess_snn.campaign.stages import play_shard, prepare_first_generation
from chess_snn.campaign.stages.dataset import find_dataset, fix_dataset, fixed_dataset
from chess_snn.campaign.store.plans import begin_iteration
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


def test_the_games_of_a_campaign_can_be_learnt_from_too(new_folder):
    folder = new_folder()
    prepare_first_generation(folder)
    begin_iteration(folder, 0, 0.0)
    play_shard(folder.path, 0, 0)
    given = find_dataset(folder.path, SPEC)
    assert (given.name, given.num_games) == ("campaign", 3)  # six games in two equal shards


def test_the_configuration_gets_path_and_digest(imported, monkeypatch):
    monkeypatch.chdir(imported.parent)
    fixed = fix_dataset(config_with("some"))
    given = find_dataset(imported, SPEC)
    assert fixed.supervised.games == str(imported)
    assert fixed.supervised.digest == given.digest
    assert fix_dataset(fixed) == fixed
    assert fixed_dataset(fixed) == given
    assert fix_dataset(load_config()) == load_config()


def test_a_damaged_shard_is_named_before_any_work(imported, tmp_path):
    path = tmp_path / "damaged"
    shutil.copytree(imported, path)
    damage(max((path / "games").rglob("shard-*")))
    with pytest.raises(CorruptDataError, match=r"damaged/games/.*/shard-00000.*SHA-256"):
        fix_dataset(config_with(path))


def test_games_of_another_game_are_refused(tmp_path):
    path = make_import(tmp_path / "go", game="go")
    with pytest.raises(UsageError, match=r"shard-000001 holds go in records .* chess in records"):
        fix_dataset(config_with(path))


def test_an_import_that_was_broken_off_is_refused(tmp_path):
    path = make_import(tmp_path / "half", finished=False)
    with pytest.raises(UsageError, match=r"not come to its end.*games import some\.pgn --out"):
        fix_dataset(config_with(path))


@pytest.mark.parametrize("make", [
    lambda path: None, lambda path: path.mkdir(), lambda path: make_import(path, num_shards=0),
])
def test_a_folder_without_games_is_refused(tmp_path, make):
    make(tmp_path / "nothing")
    with pytest.raises(UsageError, match="nothing holds no games"):
        fix_dataset(config_with(tmp_path / "nothing"))


def test_other_games_in_the_same_place_are_refused(tmp_path):
    path = make_import(tmp_path / "games")
    fixed = fix_dataset(config_with(path))
    shutil.rmtree(path)
    make_import(path, num_shards=3)
    for look in (fixed_dataset, fix_dataset):
        with pytest.raises(UsageError, match=rf"other games.*{fixed.supervised.digest}"):
            look(fixed)
