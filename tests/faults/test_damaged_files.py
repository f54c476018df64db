"""Files of a campaign that are damaged while it runs, or that are not what they claim to be.

The stages are called one by one, with a mender whose workers are this process; what a real campaign
does of it stands in test_damage_while_running.py.
"""

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small_campaigns import stage_rebuilder
from stored_shards import damage as flip_a_bit
from stored_shards import forge_files

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.integrity.rebuild import missing_generations, repair_campaign
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.stages import play_shard, train_generation, window_shards
from chess_snn.campaign.stages.networks import evaluator_of
from chess_snn.campaign.store.notes import Removed, note_removal, read_notes
from chess_snn.cli.campaign import resume
from chess_snn.data import read_folder, read_manifest, read_shard
from chess_snn.data.audit import audit_shards
from chess_snn.data.manifest import MANIFEST_NAME, Manifest, describe_file
from chess_snn.errors import (
    BeyondRepairError,
    CampaignError,
    CorruptDataError,
    DamagedFolderError,
)
from chess_snn.games import get_game
from chess_snn.training import check_checkpoint, load_trainer, load_weights

GAME = get_game("chess")
NEWEST = 2
FILES_OF_A_CHECKPOINT = 4
"""Its manifest among them."""

Damage = Callable[[Path], object]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


DAMAGES: dict[str, Damage] = {
    "flipped": flip_a_bit, "cut": cut, "emptied": lambda path: path.write_bytes(b""),
    "deleted": Path.unlink,
}


@pytest.fixture
def finished(played_campaign: CampaignFolder, tmp_path: Path) -> CampaignFolder:
    """A finished campaign, to be damaged."""
    shutil.copytree(played_campaign.path, tmp_path / "campaign")
    return CampaignFolder.open(tmp_path / "campaign")


@pytest.fixture
def under_way(finished: CampaignFolder) -> CampaignFolder:
    """Campaign whose second iteration has played, and not trained."""
    shutil.rmtree(finished.checkpoint(NEWEST))
    shutil.rmtree(finished.path / "matches" / "gen-000002")
    shutil.rmtree(finished.path / "matches" / "final")
    finished.receipt(1).unlink()
    return finished


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def digest_of(folder: CampaignFolder, generation: int) -> str:
    return str(read_manifest(folder.checkpoint(generation)).meta["weights_digest"])


def train(folder: CampaignFolder, told: list[str]) -> None:
    rebuilder = stage_rebuilder(folder, told)
    rebuilder.run(lambda: train_generation(folder.path, NEWEST - 1))


def events(folder: CampaignFolder) -> list[tuple[str, str]]:
    return [(note.path, note.event) for note in read_notes(folder)]


@pytest.mark.fault(10)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_to_a_shard_is_found(finished: CampaignFolder, damage: Damage) -> None:
    shard = finished.shard(0, 0)
    intact = shard.read_bytes()
    damage(shard)
    with pytest.raises(DamagedFolderError) as refused:
        read_shard(shard)
    assert refused.value.folder == shard
    (audit,) = audit_shards(GAME, [shard])
    assert audit.verdict == "damaged"
    shard.write_bytes(intact)
    assert audit_shards(GAME, [shard])[0].verdict == "whole"


@pytest.mark.fault(10)
@pytest.mark.parametrize("damage", ["flipped", "deleted"])
def test_a_damaged_shard_is_played_again_and_changes_nothing(
    played_campaign: CampaignFolder, under_way: CampaignFolder, damage: str
) -> None:
    shard, told = under_way.shard(0, 1), []
    DAMAGES[damage](shard)
    train(under_way, told)
    assert digest_of(under_way, NEWEST) == digest_of(played_campaign, NEWEST)
    games, expected = read_shard(shard)[0], read_shard(played_campaign.shard(0, 1))[0]
    assert games.actions.tolist() == expected.actions.tolist()

    assert told[0].startswith("DAMAGED: ")
    was_deleted = damage == "deleted"
    assert events(under_way) == [
        ("games/iter-000000/shard-0001", "quarantined"),
        ("games/iter-000000/shard-0001", "rebuilt"),
    ][was_deleted:]
    if not was_deleted:
        (aside,) = (path for path in under_way.quarantine.iterdir() if path.suffix != ".json")
        assert str(aside) in told[0]


@pytest.mark.fault(10)
def test_self_play_that_restarts_from_a_damaged_shard_has_it_mended(
    played_campaign: CampaignFolder, under_way: CampaignFolder
) -> None:
    under_way.shard(1, 0).unlink()
    flip_a_bit(under_way.shard(0, 0))
    told: list[str] = []
    rebuilder = stage_rebuilder(under_way, told)
    rebuilder.run(lambda: play_shard(under_way.path, 1, 0))
    assert ("games/iter-000000/shard-0000", "rebuilt") in events(under_way)
    games, expected = (read_shard(f.shard(1, 0))[0] for f in (under_way, played_campaign))
    assert games.actions.tolist() == expected.actions.tolist()


@pytest.mark.fault(10)
def test_a_damaged_shard_that_cannot_be_played_again_is_dropped(
    played_campaign: CampaignFolder, under_way: CampaignFolder
) -> None:
    shard, generation = under_way.shard(0, 0), under_way.checkpoint(0)
    flip_a_bit(shard)
    note_removal(under_way, [Removed("checkpoints/gen-000000", 1, "2026-01-01T00:00:00+00:00")])
    shutil.rmtree(generation)
    told: list[str] = []
    train(under_way, told)
    assert told[-1].startswith("DROPPED: ")
    meta = read_manifest(under_way.checkpoint(NEWEST)).meta
    kept = read_manifest(played_campaign.checkpoint(NEWEST)).meta["window_shards"]
    assert meta["window_shards"] == [name for name in kept if name != "iter-000000/shard-0000"]
    assert shard not in window_shards(under_way, 1)
    assert ("games/iter-000000/shard-0000", "dropped") in events(under_way)

    findings = verify_campaign(under_way)
    assert findings.is_whole
    assert {f.path: f.state for f in findings.found} == {
        "games/iter-000000/shard-0000": "dropped", "checkpoints/gen-000000": "removed",
    }

    shutil.copy(played_campaign.shard(0, 0), shard)
    assert shard in window_shards(under_way, 1), "it was restored"


@pytest.mark.fault(11)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_to_any_file_of_a_checkpoint_is_refused(
    finished: CampaignFolder, damage: Damage
) -> None:
    checkpoint = finished.checkpoint(NEWEST)
    files = files_of(checkpoint)
    assert len(files) == FILES_OF_A_CHECKPOINT
    for path in files:
        intact = path.read_bytes()
        damage(path)
        for read in (load_weights, check_checkpoint, lambda f: load_trainer(f, GAME)):
            with pytest.raises(DamagedFolderError, match=path.name) as refused:
                read(checkpoint)
            assert refused.value.folder == checkpoint
        path.write_bytes(intact)
    check_checkpoint(checkpoint)


@pytest.mark.fault(11)
@pytest.mark.parametrize("damage", [flip_a_bit, Path.unlink])
def test_a_damaged_newest_generation_is_trained_again_from_the_one_before(
    played_campaign: CampaignFolder, finished: CampaignFolder, damage: Damage
) -> None:
    damage(finished.checkpoint(NEWEST) / "weights.safetensors")
    told: list[str] = []
    stage_rebuilder(finished, told).run(lambda: evaluator_of(finished, NEWEST))
    assert told[0].startswith("DAMAGED: ")
    assert "weights.safetensors" in told[0]
    digest = digest_of(played_campaign, NEWEST)
    assert digest[:12] in told[-1]
    assert digest_of(finished, NEWEST) == digest
    assert verify_campaign(finished).is_whole


@pytest.mark.fault(11)
def test_a_finished_campaign_gets_back_its_newest_generation(
    played_campaign: CampaignFolder, finished: CampaignFolder
) -> None:
    """Which nobody plays or trains any more, and which was set aside."""
    flip_a_bit(finished.checkpoint(NEWEST) / "weights.safetensors")
    assert missing_generations(finished) == []
    repair_campaign(finished, verify_campaign(finished))
    assert NEWEST in missing_generations(finished)
    told: list[str] = []
    stage_rebuilder(finished, told).rebuild_missing()
    assert missing_generations(finished) == []
    assert digest_of(finished, NEWEST) == digest_of(played_campaign, NEWEST)


@pytest.mark.fault(11)
def test_damage_behind_damage_is_mended_first(
    played_campaign: CampaignFolder, finished: CampaignFolder
) -> None:
    """All generations, and a shard that two of them were trained on."""
    for generation in range(NEWEST + 1):
        flip_a_bit(finished.checkpoint(generation) / "weights.safetensors")
    flip_a_bit(finished.shard(0, 0))
    told: list[str] = []
    stage_rebuilder(finished, told).run(lambda: evaluator_of(finished, NEWEST))
    again = [text for text in told if not text.startswith("DAMAGED: ")]
    names = ("generation 0", "shard 0 ", "generation 1", "generation 2")
    assert [name in text for name, text in zip(names, again, strict=True)] == [True] * 4
    for generation in range(NEWEST + 1):
        assert digest_of(finished, generation) == digest_of(played_campaign, generation)
    assert verify_campaign(finished).is_whole


@pytest.mark.fault(11)
def test_a_generation_that_comes_out_otherwise_is_told(finished: CampaignFolder) -> None:
    """Stands for another kind of device: a shard that it was trained on is dropped."""
    finished.shard(1, 1).unlink()
    flip_a_bit(finished.checkpoint(NEWEST) / "weights.safetensors")
    note_removal(finished, [Removed("games/iter-000001/shard-0001", 1, None)])
    stage_rebuilder(finished, []).run(lambda: evaluator_of(finished, NEWEST))
    findings = verify_campaign(finished)
    assert findings.is_whole
    states = {finding.path: finding.state for finding in findings.found}
    assert states["checkpoints/gen-000002"] == "rebuilt"


@pytest.mark.fault(11)
def test_a_generation_that_cannot_be_trained_again_ends_the_campaign(
    finished: CampaignFolder,
) -> None:
    flip_a_bit(finished.checkpoint(NEWEST) / "trainer.json")
    note_removal(finished, [Removed("checkpoints/gen-000001", 1, "2026-01-01T00:00:00+00:00")])
    shutil.rmtree(finished.checkpoint(1))
    with pytest.raises(BeyondRepairError, match="gen-000001"):
        stage_rebuilder(finished, []).run(lambda: load_trainer(finished.checkpoint(NEWEST), GAME))
    assert ("checkpoints/gen-000002", "quarantined") in events(finished)


@pytest.mark.fault(11)
def test_a_disk_that_damages_whatever_is_made_again_is_given_up(finished: CampaignFolder) -> None:
    def damage_and_read() -> None:
        flip_a_bit(finished.shard(0, 0))
        read_shard(finished.shard(0, 0))

    with pytest.raises(BeyondRepairError):
        stage_rebuilder(finished, []).run(damage_and_read)
    assert [event for _, event in events(finished)].count("rebuilt") == 3


@pytest.mark.fault(11)
def test_damage_outside_the_campaign_is_left_to_whoever_owns_it(
    finished: CampaignFolder, tmp_path: Path
) -> None:
    shutil.copy(finished.shard(0, 0), tmp_path / "imported")
    flip_a_bit(tmp_path / "imported")
    with pytest.raises(DamagedFolderError, match="imported"):
        stage_rebuilder(finished, []).run(lambda: read_shard(tmp_path / "imported"))
    assert (tmp_path / "imported").is_file()
    assert not finished.quarantine.exists()


class Payload:
    """Whoever unpickles it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.path,)


def pickled(path: Path) -> bytes:
    return pickle.dumps(Payload(path))


def saved_by_torch(path: Path) -> bytes:
    target = path.with_suffix(".pt")
    torch.save({"weights": Payload(path)}, target)
    return target.read_bytes()


def forge(folder: Path) -> None:
    """Make the manifest agree with the files, as somebody would who means harm."""
    manifest = read_manifest(folder)
    files = {
        path.relative_to(folder).as_posix(): describe_file(path) for path in files_of(folder)
        if path.name != MANIFEST_NAME
    }
    forged = Manifest(manifest.kind, manifest.created, manifest.meta, files)
    (folder / MANIFEST_NAME).write_text(forged.to_text())


@pytest.mark.fault(24)
@pytest.mark.parametrize("make", [pickled, saved_by_torch])
@pytest.mark.parametrize("is_forged", [False, True], ids=["as it is", "manifest forged"])
def test_a_pickle_where_a_checkpoint_should_be_is_never_loaded(
    finished: CampaignFolder, tmp_path: Path, make: Callable[[Path], bytes], is_forged: bool
) -> None:
    checkpoint, trap = finished.checkpoint(NEWEST), tmp_path / "it was loaded"
    for path in files_of(checkpoint):
        if path.name == MANIFEST_NAME and is_forged:
            continue
        intact, manifest = path.read_bytes(), (checkpoint / MANIFEST_NAME).read_bytes()
        path.write_bytes(make(trap))
        if is_forged:
            forge(checkpoint)
        for read in (
            check_checkpoint, lambda f: load_trainer(f, GAME),
            lambda f: evaluator_of(finished, NEWEST) and load_trainer(f, GAME),
        ):
            with pytest.raises(CorruptDataError):
                read(checkpoint)
        assert not verify_campaign(finished).is_whole
        assert not trap.exists()
        path.write_bytes(intact)
        (checkpoint / MANIFEST_NAME).write_bytes(manifest)
    pickle.loads(pickled(trap))
    assert trap.exists(), "the trap does not work: the test showed nothing"


@pytest.mark.fault(24)
def test_a_pickle_in_a_shard_is_never_loaded(finished: CampaignFolder, tmp_path: Path) -> None:
    shard, trap = finished.shard(0, 0), tmp_path / "it was loaded"
    manifest, files = read_folder(shard)
    for name in files:
        forge_files(shard, files | {name: pickled(trap)}, manifest.meta)
        with pytest.raises(CorruptDataError):
            read_shard(shard)
    forge_files(shard, files, manifest.meta)
    read_shard(shard)
    assert not trap.exists()


@pytest.mark.fault(17)
def test_a_finished_campaign_is_not_gone_on_with_under_other_settings_bug(
    finished: CampaignFolder,
) -> None:
    file = finished.path / "campaign.toml"
    text = file.read_text()
    assert "simulations_first = 2\n" in text
    file.write_text(text.replace("simulations_first = 2\n", "simulations_first = 3\n"))
    with pytest.raises(CampaignError, match=r"search\.simulations_first"):
        resume(finished.path)
