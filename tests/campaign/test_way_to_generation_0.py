"""A campaign killed while it learns from a dataset: what changed or broke since is found."""

import shutil
from pathlib import Path

import pytest
from made_imports import Killed, make_import
from signed_files import edit_config
from small_campaigns import MICRO, idle_rebuilder
from stored_shards import damage as damage_file

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.integrity.gc import dispose, find_disposable
from chess_snn.campaign.integrity.preflight import check_before_run
from chess_snn.campaign.integrity.repair import repair_campaign
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.stages.dataset import fix_dataset
from chess_snn.campaign.stages.first_generation import learn_dataset, train_first_generation
from chess_snn.campaign.store.notes import read_notes
from chess_snn.data import read_manifest
from chess_snn.errors import CampaignError, DamagedFolderError
from chess_snn.training import ALONE, WEIGHTS, step_checkpoints


def kill_after_three_epochs(done, total):
    if done > 3 * total // 4:
        raise Killed


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    games = make_import(tmp_path_factory.mktemp("imports") / "some")
    return fix_dataset(load_config(settings=[
        *MICRO, "training.batch_size=64", "supervised.epochs=4", f'supervised.games="{games}"',
    ]))


@pytest.fixture(scope="module")
def killed(config, tmp_path_factory):
    """A campaign that was killed in its last epoch; to be copied."""
    folder = CampaignFolder.create(tmp_path_factory.mktemp("killed") / "c", config)
    with pytest.raises(Killed):
        train_first_generation(folder.path, on_progress=kill_after_three_epochs)
    return folder.path


@pytest.fixture
def folder(killed, tmp_path):
    return CampaignFolder.open(shutil.copytree(killed, tmp_path / "c"))


@pytest.fixture(scope="module")
def undisturbed(config, tmp_path_factory):
    """The digest of generation 0 of a campaign that nobody touched."""
    folder = CampaignFolder.create(tmp_path_factory.mktemp("undisturbed") / "c", config)
    train_first_generation(folder.path)
    return digest(folder)


def digest(folder):
    return read_manifest(folder.checkpoint(0)).meta["weights_digest"]


CHANGES = [
    ('size = "tiny"\n', 'size = "small"\n', "net.size was 'tiny' and is 'small'"),
    ("seed = 3\n", "seed = 9\n", "campaign.seed was 3 and is 9"),
    ("epochs = 4\n", "epochs = 5\n", "supervised.epochs was 4 and is 5"),
]


@pytest.mark.fault(17)
@pytest.mark.parametrize(("old", "new", "named"), CHANGES)
def test_a_setting_changed_before_generation_0_is_there_is_refused_bug(folder, old, new, named):
    check_before_run(folder)
    with pytest.raises(CampaignError, match=named):
        check_before_run(edit_config(folder, old, new))


def test_where_the_games_are_and_the_time_between_checkpoints_may_change(folder, tmp_path):
    games = folder.config.supervised.games
    moved = shutil.copytree(games, tmp_path / "moved")
    edit_config(folder, "checkpoint_minutes = 5.0\n", "checkpoint_minutes = 1.0\n")
    check_before_run(edit_config(folder, f'games = "{games}"\n', f'games = "{moved}"\n'))
    train_first_generation(folder.path)


@pytest.mark.fault(17)
def test_a_change_is_found_by_the_checkpoint_before_where_the_newest_cannot_say(folder):
    (step_checkpoints(folder.supervised)[-1] / "MANIFEST.json").write_text("{")
    check_before_run(folder)
    with pytest.raises(CampaignError, match=r"supervised\.epochs was 4 and is 5"):
        check_before_run(edit_config(folder, "epochs = 4\n", "epochs = 5\n"))


def test_checkpoints_that_keep_no_settings_are_gone_on_from(config, tmp_path, undisturbed):
    """As they were written formerly."""
    folder = CampaignFolder.create(tmp_path / "c", config)
    with pytest.raises(Killed):
        learn_dataset(config, folder.supervised, {}, kill_after_three_epochs, None, ALONE)
    assert step_checkpoints(folder.supervised)
    check_before_run(edit_config(folder, "seed = 3\n", "seed = 9\n"))
    edit_config(folder, "seed = 9\n", "seed = 3\n")
    train_first_generation(folder.path)
    assert digest(folder) == undisturbed


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def made_anyway(folder: CampaignFolder) -> list[str]:
    """Make generation 0, and quarantine what is corrupt; the lines that are logged."""
    told: list[str] = []
    idle_rebuilder(folder, told).run(lambda: train_first_generation(folder.path))
    return told


@pytest.mark.fault(11)
@pytest.mark.parametrize(("damage", "name"), [
    (damage_file, WEIGHTS), (truncate, "optimizer.safetensors"), (Path.unlink, "MANIFEST.json"),
])
def test_a_damaged_newest_checkpoint_is_set_aside_and_the_one_before_gone_on_from_bug(
    folder, undisturbed, damage, name
):
    _, newest = step_checkpoints(folder.supervised)
    damage(newest / name)
    with pytest.raises(DamagedFolderError, match=newest.name):
        train_first_generation(folder.path)
    (line,) = made_anyway(folder)
    assert line.startswith("DAMAGED: ")
    assert "Training continues from the one before" in line
    assert f"quarantined in {folder.quarantine}" in line
    (note,) = read_notes(folder)
    assert (note.path, note.event) == (f"supervised/{newest.name}", "quarantined")
    assert name in note.why
    assert (folder.quarantine / f"supervised.{newest.name}.0000").is_dir()
    assert digest(folder) == undisturbed
    assert not folder.supervised.exists()
    assert verify_campaign(folder).is_whole


@pytest.mark.fault(11)
def test_where_both_checkpoints_are_damaged_it_begins_anew(folder, undisturbed):
    for checkpoint in step_checkpoints(folder.supervised):
        damage_file(checkpoint / WEIGHTS)
    first, second = made_anyway(folder)
    for line in (first, second):
        assert "raining continues from the one before, or from the beginning" in line
    assert digest(folder) == undisturbed


@pytest.mark.fault(11)
def test_verify_finds_a_damaged_checkpoint_on_the_way_and_repairs_it_bug(folder, undisturbed):
    findings = verify_campaign(folder)
    assert findings.is_whole
    assert findings.checked["checkpoint"] == 2
    newest = step_checkpoints(folder.supervised)[-1]
    damage_file(newest / WEIGHTS)
    findings = verify_campaign(folder)
    assert [(f.kind, f.path, f.state) for f in findings.found] == [
        ("checkpoint", f"supervised/{newest.name}", "damaged"),
    ]
    (repair,) = repair_campaign(folder, findings)
    assert repair.is_repaired
    assert repair.text.endswith("; training continues from the one before, or from the beginning")
    findings = verify_campaign(folder)
    assert findings.is_whole
    assert [(f.kind, f.state) for f in findings.found] == [("checkpoint", "quarantined")]
    assert made_anyway(folder) == []
    assert digest(folder) == undisturbed


def test_what_is_left_of_the_way_may_go_once_generation_0_is_there_bug(folder, tmp_path):
    """The campaign was killed between the commit and the removal, or in the middle of that."""
    assert find_disposable(folder) == []
    left = shutil.copytree(folder.supervised, tmp_path / "left")
    train_first_generation(folder.path)
    shutil.move(left, folder.supervised)
    (step_checkpoints(folder.supervised)[-1] / WEIGHTS).unlink()
    assert verify_campaign(folder).found == []
    (entry,) = find_disposable(folder)
    assert (entry.sort, entry.path) == ("leftovers", folder.supervised)
    assert entry.num_bytes > 0
    dispose(folder, [entry])
    assert not folder.supervised.exists()
    assert find_disposable(folder) == []
