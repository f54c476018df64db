"""A campaign whose first network has learnt from a dataset."""

import numpy as np
import pytest
from made_imports import Killed, make_import
from small_campaigns import MICRO
from supervised_steps import supervised_progress

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.machine.training_launch import train_network
from chess_snn.campaign.stages import play_shard, prepare_first_generation, train_generation
from chess_snn.campaign.stages.dataset import fix_dataset
from chess_snn.campaign.stages.first_generation import supervised_facts, train_first_generation
from chess_snn.campaign.store.plans import begin_iteration, num_shards
from chess_snn.campaign.viewing.alarms import find_alarms
from chess_snn.data import is_committed, read_json, read_manifest
from chess_snn.errors import UsageError
from chess_snn.nets import load_network
from chess_snn.training import WEIGHTS

SETTINGS = (*MICRO, "training.batch_size=64", "supervised.epochs=2")


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    return make_import(tmp_path_factory.mktemp("imports") / "some")


@pytest.fixture
def config(imported):
    return fix_dataset(load_config(settings=[*SETTINGS, f'supervised.games="{imported}"']))


@pytest.fixture
def folder(config, tmp_path):
    return CampaignFolder.create(tmp_path / "warm", config)


def digest(path):
    return read_manifest(path).meta["weights_digest"]


def kill_at(step):
    def tell(done, total):
        if done == step:
            raise Killed
    return tell


def test_generation_0_is_trained_and_the_campaign_goes_on_from_it(folder, config, imported):
    facts = train_first_generation(folder.path)
    assert facts["games"]["digest"] == config.supervised.digest
    assert facts["games"]["path"] == str(imported)
    assert facts["points"][-1]["epoch"] == 2
    assert facts == supervised_facts(folder)
    assert not folder.supervised.exists()
    trainer = read_json(folder.checkpoint(0) / "trainer.json")
    assert trainer["steps_done"] == 0, "the campaign has a schedule of its own"
    assert trainer["settings"]["policy_loss"] == config.training.policy_loss

    assert train_first_generation(folder.path) == facts, "done again, it changes nothing"
    begin_iteration(folder, 0, 0.0)
    for shard in range(num_shards(folder, 0)):
        play_shard(folder.path, 0, shard)
    assert train_generation(folder.path, 0).generation == 1


def test_a_killed_campaign_begins_with_the_same_network(folder, config, tmp_path):
    train_first_generation(folder.path)
    other = CampaignFolder.create(tmp_path / "killed", config)
    for step in (1, 9):
        with pytest.raises(Killed):
            train_first_generation(other.path, on_progress=kill_at(step))
        assert not is_committed(other.checkpoint(0))
    steps, total = supervised_progress(other.supervised)
    assert 0 < steps < total
    train_first_generation(other.path)
    assert digest(other.checkpoint(0)) == digest(folder.checkpoint(0))


def test_a_cold_campaign_says_nothing_of_games(new_folder):
    folder = new_folder()
    prepare_first_generation(folder)
    assert supervised_facts(folder) is None


def test_games_that_changed_meanwhile_are_refused(config, tmp_path):
    path = make_import(tmp_path / "games")
    settings = [*SETTINGS, f'supervised.games="{path}"']
    folder = CampaignFolder.create(tmp_path / "c", fix_dataset(load_config(settings=settings)))
    make_import(path, num_shards=3)
    with pytest.raises(UsageError, match="holds other games"):
        train_first_generation(folder.path)
    assert not is_committed(folder.checkpoint(0))


def test_a_network_that_has_learnt_is_no_hard_start():
    metrics = {"self_play/entropy_ratio": 0.5}
    assert [alarm.name for alarm in find_alarms([metrics])] == ["hard start"]
    assert find_alarms([metrics | {"campaign/is_warm": 1.0}]) == []


def test_trained_alone_it_is_the_same_network(folder, config, tmp_path):
    train_first_generation(folder.path)
    out = tmp_path / "networks" / "tiny"
    with pytest.raises(Killed):
        train_network(config, out, num_threads=1, on_progress=kill_at(9))
    assert not out.exists()
    points = train_network(config, out, num_threads=1)
    assert [path.name for path in out.parent.iterdir()] == ["tiny"]
    assert digest(out) == digest(folder.checkpoint(0))
    made = out.stat().st_ino
    assert train_network(config, out, num_threads=1) == points
    assert out.stat().st_ino == made, "it was trained again"


def test_without_epochs_it_is_the_network_that_an_untrained_campaign_begins_with(
    imported, new_folder, tmp_path
):
    untrained = fix_dataset(load_config(settings=[
        *MICRO, f'supervised.games="{imported}"', "supervised.epochs=0",
    ]))
    train_network(untrained, tmp_path / "untrained")
    cold = new_folder()
    prepare_first_generation(cold)
    networks = [load_network(path / WEIGHTS) for path in (tmp_path / "untrained",
                                                          cold.checkpoint(0))]
    first, second = ([p.detach().numpy() for p in network.parameters()] for network in networks)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_another_training_in_the_same_place_is_refused(config, imported, tmp_path):
    out = tmp_path / "tiny"
    other = fix_dataset(load_config(settings=[
        *SETTINGS, f'supervised.games="{imported}"', "training.weight_decay=0.5",
    ]))
    with pytest.raises(Killed):
        train_network(config, out, num_threads=1, on_progress=kill_at(9))
    fault = r"training\.weight_decay = 0.0001, which is 0.5 now"
    with pytest.raises(UsageError, match=rf"tiny\.unfinished was made with {fault}"):
        train_network(other, out)
    train_network(config, out, num_threads=1)
    with pytest.raises(UsageError, match=rf"tiny was made with {fault}"):
        train_network(other, out)


def test_a_place_that_is_taken_is_refused(config, folder, tmp_path):
    (tmp_path / "thesis").mkdir()
    prepare_first_generation(folder)
    for taken in (tmp_path / "thesis", folder.checkpoint(0)):
        with pytest.raises(UsageError, match="not a network made by `chess-snn games learn`"):
            train_network(config, taken)
