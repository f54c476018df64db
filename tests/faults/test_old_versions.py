"""Stored campaigns are read; what other versions stored is read by an upgrade or refused by name.

Upgrades themselves: tests/data/test_data_files.py."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from signed_files import resign
from small_campaigns import play_iteration, play_match
from stored_files import ARCHIVES, copy_campaign, unpack
from stored_shards import edit_manifest

from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.forking import extend_campaign
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.models.exporting import export_model, read_exported
from chess_snn.campaign.models.references import model_of_campaign
from chess_snn.campaign.stages import window_shards
from chess_snn.campaign.stages.networks import evaluator_of, game_of
from chess_snn.campaign.store.notes import read_notes, read_removals
from chess_snn.campaign.store.plans import read_plans
from chess_snn.campaign.strength.champions import read_hand_promotions
from chess_snn.campaign.strength.match_games import match_files, read_match
from chess_snn.campaign.strength.match_schedule import final_matches
from chess_snn.campaign.strength.matches import is_finished
from chess_snn.campaign.strength.reports import CONVERSION_REPORTS
from chess_snn.campaign.viewing.results import result_rows
from chess_snn.data import (
    ReplayWindow,
    read_manifest,
    read_shard,
    verify_folder,
)
from chess_snn.data.manifest import MANIFEST_NAME
from chess_snn.errors import UnknownVersionError
from chess_snn.games import get_game
from chess_snn.training import load_trainer, load_weights

pytestmark = pytest.mark.fault(25)


GAME = get_game("chess")
NEWER = 99


@pytest.fixture
def stored(tmp_path: Path) -> CampaignFolder:
    return copy_campaign(tmp_path)


def test_a_file_of_an_older_version_is_refused_by_name(stored: CampaignFolder) -> None:
    match, report = (stored.match("gen-000001", name) for name in ("random", "conversion"))
    for path, read in (
        (stored.receipt(0), lambda: read_receipts(stored)),
        (stored.plan(0), lambda: read_plans(stored)),
        (match, lambda: read_match(GAME.spec, match)),
        (report, lambda: CONVERSION_REPORTS.read(report)),
    ):
        older = json.loads(path.read_text())["schema"] - 1
        resign(path, lambda body, older=older: body.update(schema=older))
        with pytest.raises(UnknownVersionError, match=f"version {older} "):
            read()
    assert {finding.state for finding in verify_campaign(stored).damage} == {"unknown version"}


def newer(name: str) -> Callable[[dict], None]:
    return lambda body: body.update({name: NEWER})


def newer_meta(name: str) -> Callable[[dict], None]:
    return lambda body: body["meta"].update({name: NEWER})


def refused_by(name: str, read: Callable[[], object]) -> str:
    with pytest.raises(UnknownVersionError, match=f"{name} .*{NEWER}") as refused:
        read()
    return str(refused.value)


def test_whatever_a_newer_program_stored_is_refused_by_name(stored: CampaignFolder) -> None:
    checkpoint = stored.checkpoint(1)
    note = max(stored.quarantine.glob("*.json"))
    for path, change, name, read in (
        (checkpoint / MANIFEST_NAME, newer_meta("checkpoint_version"), "checkpoint",
         lambda: load_weights(checkpoint)),
        (stored.checkpoint(2) / MANIFEST_NAME, newer("version"), "chess-snn/manifest",
         lambda: read_manifest(stored.checkpoint(2))),
        (stored.receipt(0), newer("schema"), "receipt", lambda: read_receipts(stored)),
        (stored.plan(0), newer("schema"), "plan", lambda: read_plans(stored)),
        (stored.hand_promotion(0), newer("schema"), "choice of a champion",
         lambda: read_hand_promotions(stored)),
        (note, newer("schema"), "quarantine note", lambda: read_notes(stored)),
        (stored.removal(0), newer("schema"), "removal", lambda: read_removals(stored)),
    ):
        resign(path, change)
        assert path.parent.name in refused_by(name, read)
    shard = stored.shard(0, 0)
    edit_manifest(shard, newer_meta("shard_version"))
    assert shard.name in refused_by("shard", lambda: read_shard(shard))


def test_a_newer_configuration_is_refused_before_its_settings_are_read(
    stored: CampaignFolder,
) -> None:
    path = stored.path / "campaign.toml"
    text = path.read_text()
    assert text.count("schema = ") == 1
    path.write_text(re.sub("schema = .*", f"schema = {NEWER}", text) + "\n[later]\nsetting = 1\n")
    assert str(path) in refused_by(
        "campaign configuration", lambda: CampaignFolder.open(stored.path)
    )


def test_a_match_of_another_version_is_refused_by_name(stored: CampaignFolder) -> None:
    path = match_files(stored)[0]
    resign(path, newer("schema"))
    with pytest.raises(UnknownVersionError, match=f"{path.name}.*{NEWER}"):
        read_match(GAME.spec, path)


def test_what_is_of_another_version_is_no_damage_to_be_set_aside(stored: CampaignFolder) -> None:
    """Somebody may only have to install the newer program."""
    edit_manifest(stored.shard(0, 0), newer_meta("shard_version"))
    findings = verify_campaign(stored)
    assert [(f.path, f.state) for f in findings.damage] == [
        ("games/iter-000000/shard-0000", "unknown version")
    ]
    verify_folder(stored.shard(0, 0))


# Stored campaigns are opened, verified, exported and resumed.


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def archived(tmp_path: Path, request: pytest.FixtureRequest) -> CampaignFolder:
    return unpack(request.param, tmp_path)


def test_a_stored_campaign_is_whole_and_everything_in_it_is_read(
    archived: CampaignFolder, tmp_path: Path
) -> None:
    findings = verify_campaign(archived)
    assert findings.found == []
    assert findings.checked["shard"] == 4
    assert findings.checked["checkpoint"] == 3
    assert findings.checked["receipt"] == findings.checked["plan"] == 2
    assert findings.num_games == 12
    assert findings.num_match_games > 0
    assert is_finished(archived)

    receipts = read_receipts(archived)
    figures = result_rows(archived, receipts)[-1]
    assert figures["truncated_rate"] is not None
    newest = receipts[-1].training.generation
    assert load_trainer(archived.checkpoint(newest), game_of(archived)).steps_done > 0
    shards = window_shards(archived, newest - 1)
    window = ReplayWindow.load(game_of(archived), shards, capacity=10_000)
    assert len(window.sample(8, np.random.default_rng(0))) == 8
    evaluator_of(archived, newest)

    version = export_model(archived, newest, tmp_path / "model")
    assert read_exported(tmp_path / "model")[0]["generation"] == newest
    assert version.digest == read_manifest(archived.checkpoint(newest)).meta["weights_digest"]
    model_of_campaign(archived.path).load(game_of(archived))


@pytest.mark.slow
def test_it_is_extended_and_resumed(archived: CampaignFolder) -> None:
    extend_campaign(archived, iterations=3)
    receipt = play_iteration(archived, 2)
    for match in final_matches(archived):
        play_match(archived, match)
    assert receipt.training.generation == 3
    assert len(read_receipts(archived)) == 3
    assert is_finished(archived)
    assert verify_campaign(archived).is_whole
