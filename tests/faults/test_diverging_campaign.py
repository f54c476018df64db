"""A campaign whose training diverges stops with one line; its champion stays the champion."""

import math
import shutil
from pathlib import Path

import pytest
import torch

pytestmark = [
    pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(7200), pytest.mark.fault(15),
]
pytest.importorskip("mlflow")

from campaign_driver import (  # noqa: E402
    FINISH_TIMEOUT_S,
    SMALL_OPTIONS,
    faults_at,
    kill_campaign,
    launch,
    settings,
    wait_until,
)
from mlflow.tracking import MlflowClient  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

from chess_snn.campaign import CampaignFolder, read_receipts  # noqa: E402
from chess_snn.campaign.strength.champions import champion_of  # noqa: E402
from chess_snn.data import read_manifest, staged_folder  # noqa: E402
from chess_snn.tasks.tracking import MODEL_NAME, champion_of_campaign, tracking_uri  # noqa: E402

MOMENTS = "optimizer.safetensors"


def test_a_campaign_that_diverges_in_its_second_iteration_keeps_its_champion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHESS_SNN_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    path, log, fired = tmp_path / "c", tmp_path / "log", tmp_path / "fired"
    # A network that grows begins with new moments.
    changed = settings(training__skip_limit=2, net__growth="[]")
    arguments = ["--dir", str(path), *SMALL_OPTIONS, *changed]
    environment = faults_at(fired, **{"training.begins@2": "hold", "mlflow.recorded": "hold"})
    process = launch("start", *arguments, log=log, environment=environment)
    # The first iteration is over and recorded, the second has its games.
    wait_until((fired / "mlflow.recorded").exists, process, log)
    (fired / "mlflow.recorded").unlink()
    wait_until((fired / "training.begins").exists, process, log)
    kill_campaign(process)
    folder = CampaignFolder.open(path)
    champion, alias = champion_of(folder, read_receipts(folder)), champion_in_mlflow(folder)
    assert champion is not None
    assert alias == "1"
    poison_moments(folder.checkpoint(1))

    log.unlink()
    process = launch("resume", str(path), log=log)
    assert process.wait(FINISH_TIMEOUT_S) == 2, log.read_text()[-3000:]
    text = log.read_text()
    assert "[training.diverged]" in text
    assert "Traceback" not in text
    assert not folder.checkpoint(2).exists()
    assert len(read_receipts(folder)) == 1
    assert champion_of(folder, read_receipts(folder)) == champion
    assert champion_in_mlflow(folder) == alias


def poison_moments(checkpoint: Path) -> None:
    """Make AdamW's moments NaN, and so every weight after one step; all digests are right."""
    manifest = read_manifest(checkpoint)
    aside = checkpoint.with_name("aside")
    checkpoint.rename(aside)
    with staged_folder(checkpoint) as stage:
        for file in manifest.files:
            (stage.path / file).write_bytes((aside / file).read_bytes())
        tensors = {
            name: torch.full_like(tensor, math.nan) if tensor.ndim else tensor  # it counts steps
            for name, tensor in load_file(aside / MOMENTS).items()
        }
        save_file(tensors, stage.path / MOMENTS)
        stage.commit(kind=manifest.kind, meta=manifest.meta)
    shutil.rmtree(aside)


def champion_in_mlflow(folder: CampaignFolder) -> str:
    """The generation that has the campaign's alias."""
    uri = tracking_uri()
    client = MlflowClient(tracking_uri=uri, registry_uri=uri)
    return client.get_model_version_by_alias(
        MODEL_NAME, champion_of_campaign(folder.campaign_id)
    ).tags["generation"]
