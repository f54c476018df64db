"""Training that diverges leaves the campaign as it was before that iteration's training."""

import math
from pathlib import Path

import pytest
from small_campaigns import MICRO, make_campaign, play_first_games

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.stages import train_generation
from chess_snn.data import ReplayWindow, Samples, is_committed, read_manifest
from chess_snn.errors import TrainingDivergedError
from chess_snn.types import Int32Array

pytestmark = [pytest.mark.fault(15), pytest.mark.timeout(900)]

SETTINGS = (*MICRO, "training.presentations=3.0", "training.skip_limit=2")


@pytest.fixture
def played(tmp_path: Path) -> CampaignFolder:
    """A campaign whose first iteration has played and not trained."""
    folder = make_campaign(tmp_path / "c", settings=SETTINGS)
    play_first_games(folder)
    return folder


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch):
    """From now on the samples of every batch, or of the second alone, have a target of NaN."""
    gather = ReplayWindow.gather

    def spoil(*, every_batch: bool) -> None:
        num_gathered = 0

        def gathered(window: ReplayWindow, rows: Int32Array) -> Samples:
            nonlocal num_gathered
            num_gathered += 1
            samples = gather(window, rows)
            if every_batch or num_gathered == 2:
                samples.outcomes_stm[0] = math.nan
            return samples

        monkeypatch.setattr(ReplayWindow, "gather", gathered)

    return spoil


def test_training_that_diverges_leaves_the_generation_before_it(played, poison, monkeypatch):
    first = read_manifest(played.checkpoint(0))
    poison(every_batch=True)
    with pytest.raises(TrainingDivergedError) as halted:
        train_generation(played.path, 0)
    message = str(halted.value)
    assert "training step 2 " in message
    assert f"--config {played.path / 'campaign.toml'}" in message
    assert [path.name for path in (played.path / "checkpoints").iterdir()] == ["gen-000000"]
    assert read_manifest(played.checkpoint(0)) == first

    monkeypatch.undo()  # the memory module that was bad has been replaced
    assert train_generation(played.path, 0).generation == 1
    assert is_committed(played.checkpoint(1))


def test_a_single_bad_batch_is_skipped_and_told(played, poison):
    poison(every_batch=False)
    metrics = train_generation(played.path, 0).metrics
    assert metrics["skipped_steps"] == 1
    assert metrics["steps"] >= 3
    assert math.isfinite(metrics["value_loss"])
