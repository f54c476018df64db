"""A campaign whose first network has learnt from a dataset."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from made_imports import Killed, fixed_games, make_import
from signed_files import edit_config
from small_campaigns import MICRO, idle_rebuilder
from stored_shards import damage as damage_file
from supervised_steps import supervised_progress

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.integrity.gc import dispose, find_disposable
from chess_snn.campaign.integrity.preflight import check_before_run
from chess_snn.campaign.integrity.rebuild import repair_campaign
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.machine.training_launch import train_network
from chess_snn.campaign.stages import play_shard, prepare_first_generation, train_generation
from chess_snn.campaign.stages.first_generation import (
    learn_dataset,
    new_network,
    supervised_facts,
    train_first_generation,
)
from chess_snn.campaign.store.notes import read_notes
from chess_snn.campaign.store.plans import begin_iteration, num_shards
from chess_snn.campaign.viewing.alarms import find_alarms
from chess_snn.data import is_committed, read_json, read_manifest
from chess_snn.errors import CampaignError, DamagedFolderError, UsageError
from chess_snn.nets import load_network
from chess_snn.training import ALONE, WEIGHTS, step_checkpoints

SETTINGS = (*MICRO, "training.batch_size=64", "supervised.epochs=2")


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    return make_import(tmp_path_factory.mktemp("imports") / "some")


@pytest.fixture(scope="module")
def config(imported):
    return fixed_games(load_config(settings=[*SETTINGS, f'supervised.games="{imported}"']))


@pytest.fixture(scope="module")
def trained(config, tmp_path_factory):
    """A campaign that has learnt from the games; a test that changes it copies it."""
    folder = CampaignFolder.create(tmp_path_factory.mktemp("trained") / "warm", config)
    assert train_first_generation(folder.path) == supervised_facts(folder)
    return folder


def digest(path):
    return read_manifest(path).meta["weights_digest"]


def kill_at(step):
    def tell(done, total):
        if done == step:
            raise Killed
    return tell


def test_generation_0_is_trained_and_the_campaign_goes_on_from_it(
    trained, config, imported, tmp_path
):
    folder = CampaignFolder.open(shutil.copytree(trained.path, tmp_path / "warm"))
    facts = train_first_generation(folder.path)
    assert facts["games"]["digest"] == config.supervised.digest
    assert facts["games"]["path"] == str(imported)
    assert facts["points"][-1]["epoch"] == 2
    assert facts == supervised_facts(trained), "done again, it changes nothing"
    assert not folder.supervised.exists()
    trainer = read_json(folder.checkpoint(0) / "trainer.json")
    assert trainer["steps_done"] == 0, "the campaign has a schedule of its own"
    assert trainer["settings"]["root_value_share"] == config.training.root_value_share

    begin_iteration(folder, 0, 0.0)
    for shard in range(num_shards(folder, 0)):
        play_shard(folder.path, 0, shard)
    assert train_generation(folder.path, 0).generation == 1


def test_a_killed_campaign_begins_with_the_same_network(trained, config, tmp_path):
    other = CampaignFolder.create(tmp_path / "killed", config)
    for step in (1, 9):
        with pytest.raises(Killed):
            train_first_generation(other.path, on_progress=kill_at(step))
        assert not is_committed(other.checkpoint(0))
    steps, total = supervised_progress(other.supervised)
    assert 0 < steps < total
    train_first_generation(other.path)
    assert digest(other.checkpoint(0)) == digest(trained.checkpoint(0))


def test_a_cold_campaign_says_nothing_of_games(folder):
    prepare_first_generation(folder)
    assert supervised_facts(folder) is None


def test_games_that_changed_meanwhile_are_refused(config, tmp_path):
    path = make_import(tmp_path / "games")
    settings = [*SETTINGS, f'supervised.games="{path}"']
    folder = CampaignFolder.create(tmp_path / "c", fixed_games(load_config(settings=settings)))
    make_import(path, num_shards=3)
    with pytest.raises(UsageError, match=str(path)):
        train_first_generation(folder.path)
    assert not is_committed(folder.checkpoint(0))


def test_a_network_that_has_learnt_is_no_hard_start():
    metrics = {"entropy_ratio": 0.5}
    assert [alarm.name for alarm in find_alarms([metrics])] == ["hard start"]
    assert find_alarms([metrics | {"is_warm": 1.0}]) == []


def test_trained_alone_it_is_the_same_network(trained, config, tmp_path):
    out = tmp_path / "networks" / "tiny"
    with pytest.raises(Killed):
        train_network(config, out, num_threads=1, on_progress=kill_at(9))
    assert not out.exists()
    points = train_network(config, out, num_threads=1)
    assert [path.name for path in out.parent.iterdir()] == ["tiny"]
    assert digest(out) == digest(trained.checkpoint(0))
    made = out.stat().st_ino
    assert train_network(config, out, num_threads=1) == points
    assert out.stat().st_ino == made, "it was trained again"


def test_without_epochs_it_is_the_network_that_an_untrained_campaign_begins_with(
    imported, new_folder, tmp_path
):
    untrained = fixed_games(load_config(settings=[
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
    other = fixed_games(load_config(settings=[
        *SETTINGS, f'supervised.games="{imported}"', "training.weight_decay=0.5",
    ]))
    with pytest.raises(Killed):
        train_network(config, out, num_threads=1, on_progress=kill_at(9))
    fault = r"training\.weight_decay = 0.0001, which is 0.5 now"
    with pytest.raises(UsageError, match=rf"tiny\.unfinished .*{fault}"):
        train_network(other, out)
    train_network(config, out, num_threads=1)
    with pytest.raises(UsageError, match=rf"tiny .*{fault}"):
        train_network(other, out)


def test_a_place_that_is_taken_is_refused(config, trained, tmp_path):
    (tmp_path / "thesis").mkdir()
    for taken in (tmp_path / "thesis", trained.checkpoint(0)):
        with pytest.raises(UsageError, match=taken.name):
            train_network(config, taken)


# A campaign killed while it learns from a dataset: what changed or broke since is found.


def kill_after_three_epochs(done, total):
    if done > 3 * total // 4:
        raise Killed


@pytest.fixture(scope="module")
def four_epochs(config):
    return replace(config, supervised=replace(config.supervised, epochs=4))


@pytest.fixture(scope="module")
def killed(four_epochs, tmp_path_factory):
    """A campaign that was killed in its last epoch; to be copied."""
    stopped = CampaignFolder.create(tmp_path_factory.mktemp("killed") / "c", four_epochs)
    with pytest.raises(Killed):
        train_first_generation(stopped.path, on_progress=kill_after_three_epochs)
    return stopped.path


@pytest.fixture
def stopped(killed, tmp_path):
    return CampaignFolder.open(shutil.copytree(killed, tmp_path / "c"))


@pytest.fixture(scope="module")
def undisturbed(four_epochs, tmp_path_factory):
    """The digest of generation 0 of a campaign that nobody touched."""
    folder = CampaignFolder.create(tmp_path_factory.mktemp("undisturbed") / "c", four_epochs)
    train_first_generation(folder.path)
    return digest(folder.checkpoint(0))


CHANGES = [
    ('size = "1x4"\n', 'size = "small"\n', "net.size was '1x4' and is 'small'"),
    ("seed = 3\n", "seed = 9\n", "campaign.seed was 3 and is 9"),
    ("epochs = 4\n", "epochs = 5\n", "supervised.epochs was 4 and is 5"),
]


@pytest.mark.fault(17)
@pytest.mark.parametrize(("old", "new", "named"), CHANGES)
def test_a_setting_changed_before_generation_0_is_there_is_refused_bug(stopped, old, new, named):
    check_before_run(stopped)
    with pytest.raises(CampaignError, match=named):
        check_before_run(edit_config(stopped, old, new))


def test_where_the_games_are_and_the_time_between_checkpoints_may_change(stopped, tmp_path):
    games = stopped.config.supervised.games
    moved = shutil.copytree(games, tmp_path / "moved")
    edit_config(stopped, "checkpoint_minutes = 5.0\n", "checkpoint_minutes = 1.0\n")
    check_before_run(edit_config(stopped, f'games = "{games}"\n', f'games = "{moved}"\n'))
    train_first_generation(stopped.path)


@pytest.mark.fault(17)
def test_a_change_is_found_by_the_checkpoint_before_where_the_newest_cannot_say(stopped):
    (step_checkpoints(stopped.supervised)[-1] / "MANIFEST.json").write_text("{")
    check_before_run(stopped)
    with pytest.raises(CampaignError, match=r"supervised\.epochs"):
        check_before_run(edit_config(stopped, "epochs = 4\n", "epochs = 5\n"))


def test_checkpoints_that_keep_no_settings_are_gone_on_from(four_epochs, tmp_path, undisturbed):
    """Checkpoints are as they were written formerly."""
    stopped = CampaignFolder.create(tmp_path / "c", four_epochs)
    with pytest.raises(Killed):
        learn_dataset(
            four_epochs, partial(new_network, four_epochs), stopped.supervised, {},
            kill_after_three_epochs, None, ALONE,
        )
    assert step_checkpoints(stopped.supervised)
    check_before_run(edit_config(stopped, "seed = 3\n", "seed = 9\n"))
    edit_config(stopped, "seed = 9\n", "seed = 3\n")
    train_first_generation(stopped.path)
    assert digest(stopped.checkpoint(0)) == undisturbed


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def made_anyway(stopped: CampaignFolder) -> list[str]:
    """Make generation 0, and quarantine what is corrupt; the lines that are logged."""
    told: list[str] = []
    idle_rebuilder(stopped, told).run(lambda: train_first_generation(stopped.path))
    return told


@pytest.mark.fault(11)
@pytest.mark.parametrize(("damage", "name"), [
    (damage_file, WEIGHTS), (truncate, "optimizer.safetensors"), (Path.unlink, "MANIFEST.json"),
])
def test_a_damaged_newest_checkpoint_is_set_aside_and_the_one_before_gone_on_from_bug(
    stopped, undisturbed, damage, name
):
    _, newest = step_checkpoints(stopped.supervised)
    damage(newest / name)
    with pytest.raises(DamagedFolderError, match=newest.name):
        train_first_generation(stopped.path)
    (line,) = made_anyway(stopped)
    assert line.startswith("DAMAGED: ")
    assert f"quarantined in {stopped.quarantine}" in line
    (note,) = read_notes(stopped)
    assert (note.path, note.event) == (f"supervised/{newest.name}", "quarantined")
    assert name in note.why
    assert (stopped.quarantine / f"supervised.{newest.name}.0000").is_dir()
    assert digest(stopped.checkpoint(0)) == undisturbed
    assert not stopped.supervised.exists()
    assert verify_campaign(stopped).is_whole


@pytest.mark.fault(11)
def test_where_both_checkpoints_are_damaged_it_begins_anew(stopped, undisturbed):
    for checkpoint in step_checkpoints(stopped.supervised):
        damage_file(checkpoint / WEIGHTS)
    first, second = made_anyway(stopped)
    for line in (first, second):
        assert "raining continues" in line
    assert digest(stopped.checkpoint(0)) == undisturbed


@pytest.mark.fault(11)
def test_verify_finds_a_damaged_checkpoint_on_the_way_and_repairs_it_bug(stopped, undisturbed):
    findings = verify_campaign(stopped)
    assert findings.is_whole
    assert findings.checked["checkpoint"] == 2
    newest = step_checkpoints(stopped.supervised)[-1]
    damage_file(newest / WEIGHTS)
    findings = verify_campaign(stopped)
    assert [(f.kind, f.path, f.state) for f in findings.found] == [
        ("checkpoint", f"supervised/{newest.name}", "damaged"),
    ]
    (repair,) = repair_campaign(stopped, findings)
    assert repair.is_repaired
    assert repair.text.endswith("; training continues from the one before, or from the beginning")
    findings = verify_campaign(stopped)
    assert findings.is_whole
    assert [(f.kind, f.state) for f in findings.found] == [("checkpoint", "quarantined")]
    assert made_anyway(stopped) == []
    assert digest(stopped.checkpoint(0)) == undisturbed


def test_what_is_left_of_the_way_may_go_once_generation_0_is_there_bug(stopped, tmp_path):
    """The campaign was killed between the commit and the removal, or in the middle of that."""
    assert find_disposable(stopped) == []
    left = shutil.copytree(stopped.supervised, tmp_path / "left")
    train_first_generation(stopped.path)
    shutil.move(left, stopped.supervised)
    (step_checkpoints(stopped.supervised)[-1] / WEIGHTS).unlink()
    assert verify_campaign(stopped).found == []
    (entry,) = find_disposable(stopped)
    assert (entry.sort, entry.path) == ("leftovers", stopped.supervised)
    assert entry.num_bytes > 0
    dispose(stopped, [entry])
    assert not stopped.supervised.exists()
    assert find_disposable(stopped) == []
