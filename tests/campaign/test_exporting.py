"""A network on its own: what is exported is what was committed, or nothing is."""


import pytest
from stored_files import copy_campaign

from chess_snn.campaign.models import exporting
from chess_snn.campaign.models.exporting import export_model, read_exported
from chess_snn.data import read_manifest, staged_folder, verify_folder
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.training import WEIGHTS

GENERATION = 1


@pytest.fixture
def folder(tmp_path):
    return copy_campaign(tmp_path)


def after_the_check(monkeypatch, happen):
    """Have ``happen()`` happen once the checkpoint was found whole, and before it is copied."""
    load_weights = exporting.load_weights
    monkeypatch.setattr(exporting, "load_weights", lambda path: (load_weights(path), happen()))


def test_an_exported_network_is_the_one_of_the_checkpoint(folder, tmp_path):
    version = export_model(folder, GENERATION, tmp_path / "model")
    checkpoint = read_manifest(folder.checkpoint(GENERATION))
    exported = verify_folder(tmp_path / "model")
    assert exported.files[WEIGHTS] == checkpoint.files[WEIGHTS]
    assert exported.meta["weights_digest"] == version.digest
    assert read_exported(tmp_path / "model")[0]["generation"] == GENERATION


def test_a_bit_that_flips_while_a_network_is_copied_is_found_bug(folder, tmp_path, monkeypatch):
    weights = folder.checkpoint(GENERATION) / WEIGHTS

    def flip():
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(content)

    after_the_check(monkeypatch, flip)
    with pytest.raises(CorruptDataError):
        export_model(folder, GENERATION, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_who_finds_another_network_in_its_place_does_not_claim_it_bug(
    folder, tmp_path, monkeypatch
):
    def come_first():
        with staged_folder(tmp_path / "model") as stage:
            stage.commit(exporting.KIND, {"weights_digest": "another"})

    after_the_check(monkeypatch, come_first)
    with pytest.raises(UsageError, match="model"):
        export_model(folder, GENERATION, tmp_path / "model")
    assert read_manifest(tmp_path / "model").meta == {"weights_digest": "another"}
