"""Every reader of a generation compares it with its number and with the receipt that names it."""

import logging
import shutil

import pytest
from small_campaigns import copy_generation, make_weights

from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.forking import fork_campaign, fork_config
from chess_snn.campaign.integrity.rebuild import missing_generations, repair_campaign
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.models.exporting import export_model
from chess_snn.campaign.models.references import find_model
from chess_snn.campaign.stages.networks import evaluator_of
from chess_snn.campaign.stages.training import check_training_inputs
from chess_snn.campaign.store.generations import read_generation
from chess_snn.campaign.store.notes import write_note
from chess_snn.campaign.strength.champions import champion_of
from chess_snn.errors import CampaignError, CorruptDataError, DamagedFolderError
from chess_snn.report.page import report_html


@pytest.fixture
def folder(stored_campaign):
    return stored_campaign


def fork(folder: CampaignFolder) -> None:
    fork_campaign(
        folder, folder.path.with_name("fork"), 2,
        fork_config(folder, 2, ["campaign.iterations=3"]),
    )


READERS = {
    "play": lambda folder: find_model(f"{folder.path}@2").load_stored(),
    "export": lambda folder: export_model(folder, 2, folder.path.with_name("exported")),
    "self-play": lambda folder: evaluator_of(folder, 2),
    "train": lambda folder: check_training_inputs(folder, 2),
    "fork": fork,
}


@pytest.mark.fault(11)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_generation_in_the_place_of_another_is_not_used_bug(folder, read):
    shutil.rmtree(folder.checkpoint(2))
    shutil.copytree(folder.checkpoint(1), folder.checkpoint(2))
    with pytest.raises(DamagedFolderError, match="gen-000002"):
        read(folder)
    assert not folder.path.with_name("exported").exists()
    assert not folder.path.with_name("fork").exists()


@pytest.mark.fault(11)
def test_a_generation_in_the_place_of_another_is_quarantined_and_made_again(folder):
    shutil.rmtree(folder.checkpoint(2))
    shutil.copytree(folder.checkpoint(1), folder.checkpoint(2))
    findings = verify_campaign(folder)
    assert [(f.path, f.state) for f in findings.damage] == [("checkpoints/gen-000002", "damaged")]
    (repair,) = repair_campaign(folder, findings)
    assert repair.is_repaired
    assert missing_generations(folder) == [2]


@pytest.mark.fault(11)
def test_weights_that_the_receipt_does_not_name_are_not_used(folder):
    shutil.rmtree(folder.checkpoint(2))
    copy_generation(folder, 1, target=2)
    for read in READERS.values():
        with pytest.raises(CorruptDataError, match="gen-000002"):
            read(folder)


def test_a_generation_that_was_rebuilt_may_have_other_weights(folder):
    shutil.rmtree(folder.checkpoint(2))
    copy_generation(folder, 1, target=2)
    write_note(folder, folder.checkpoint(2), "rebuilt", "on another device")
    assert read_generation(folder, 2).meta["generation"] == 2
    READERS["play"](folder)


def test_a_report_says_that_the_network_of_its_champion_is_another(folder):
    champion = champion_of(folder, read_receipts(folder))
    shutil.rmtree(folder.checkpoint(champion))
    shutil.copytree(folder.checkpoint(3 - champion), folder.checkpoint(champion))
    assert f"holds generation {3 - champion}" in report_html(folder)


def test_the_newest_network_is_not_quietly_the_one_before_it_bug(folder):
    (folder.checkpoint(2) / "MANIFEST.json").unlink()
    assert missing_generations(folder) == [2]
    for text in (str(folder.path), str(folder.checkpoint(2) / "weights.safetensors")):
        with pytest.raises(DamagedFolderError, match=r"gen-000002.*MANIFEST\.json"):
            find_model(text).load_stored()
    shutil.rmtree(folder.checkpoint(2))
    with pytest.raises(CampaignError, match="generation 2"):
        find_model(str(folder.path))


def test_weights_without_a_manifest_are_said_to_be_unchecked(folder, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        find_model(str(folder.path)).load_stored()
        assert not caplog.records
        weights = make_weights(tmp_path / "weights.safetensors")
        find_model(str(weights)).load_stored()
    assert caplog.text.count(str(weights)) == 1


def test_an_exported_network_without_its_manifest_is_not_used(folder, tmp_path):
    export_model(folder, 2, tmp_path / "exported")
    (tmp_path / "exported" / "MANIFEST.json").unlink()
    with pytest.raises(DamagedFolderError, match=r"MANIFEST\.json"):
        find_model(str(tmp_path / "exported")).load_stored()
