"""Finished campaigns of earlier programs are opened, verified, exported and resumed."""

from pathlib import Path

import numpy as np
import pytest
from small_campaigns import play_iteration, play_match
from stored_files import ARCHIVES, OLDEST, copy_campaign, unpack

from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.extending import extend_campaign
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.models.exporting import export_model, read_exported
from chess_snn.campaign.models.references import model_of_campaign
from chess_snn.campaign.stages import window_shards
from chess_snn.campaign.stages.networks import evaluator_of, game_of
from chess_snn.campaign.strength.matches import final_matches, is_finished
from chess_snn.data import ReplayWindow, read_manifest
from chess_snn.training import load_trainer

pytestmark = pytest.mark.fault(25)


@pytest.fixture(params=[OLDEST, *ARCHIVES], ids=lambda path: path.name.partition(".")[0])
def stored(tmp_path: Path, request: pytest.FixtureRequest) -> CampaignFolder:
    if request.param == OLDEST:
        return copy_campaign(tmp_path)
    return unpack(request.param, tmp_path)


def test_a_stored_campaign_is_whole_and_everything_in_it_is_read(
    stored: CampaignFolder, tmp_path: Path
) -> None:
    findings = verify_campaign(stored)
    assert findings.found == []
    assert findings.checked["shard"] == 4
    assert findings.checked["checkpoint"] == 3
    assert findings.checked["receipt"] == findings.checked["plan"] == 2
    assert findings.num_games == 12
    assert findings.num_match_games > 0
    assert is_finished(stored)

    newest = read_receipts(stored)[-1].training.generation
    assert load_trainer(stored.checkpoint(newest), game_of(stored)).steps_done > 0
    window = ReplayWindow.load(game_of(stored), window_shards(stored, newest - 1), capacity=10_000)
    assert len(window.sample(8, np.random.default_rng(0))) == 8
    evaluator_of(stored, newest)

    version = export_model(stored, newest, tmp_path / "model")
    assert read_exported(tmp_path / "model")[0]["generation"] == newest
    assert version.digest == read_manifest(stored.checkpoint(newest)).meta["weights_digest"]
    model_of_campaign(stored.path).load(game_of(stored))


def test_it_is_extended_and_resumed(stored: CampaignFolder) -> None:
    extend_campaign(stored, iterations=3)
    receipt = play_iteration(stored, 2)
    for match in final_matches(stored):
        play_match(stored, match)
    assert receipt.training.generation == 3
    assert len(read_receipts(stored)) == 3
    assert is_finished(stored)
    assert verify_campaign(stored).is_whole
