"""`chess-snn train` keeps what a campaign's results depend on."""

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.cli.main import app


def train(*arguments: str) -> BaseException | None:
    return CliRunner().invoke(app, ["train", *arguments]).exception


@pytest.fixture
def folder(tmp_path: Path) -> CampaignFolder:
    return CampaignFolder.create(tmp_path / "c", load_config(settings=["training.micro_batch=64"]))


NOTHING_TO_TRAIN = "has trained every iteration that it began"
"""What is refused after the options, so that nothing is trained."""


@pytest.mark.parametrize(("option", "value"), [
    ("--batch-size", "64"), ("--learning-rate", "0.5"), ("--precision", "fp32"),
])
def test_a_campaign_keeps_what_its_results_depend_on(folder, option, value):
    told = str(train(str(folder.path), option, value))
    assert f"chess-snn campaign fork {folder.path}" in told


def test_a_campaigns_own_settings_and_a_pace_of_its_own_are_taken(folder):
    told = str(train(
        str(folder.path), "--batch-size", "256", "--learning-rate", "6e-3", "--precision", "bf16",
        "--backend", "gloo",
    ))
    assert NOTHING_TO_TRAIN in told
    told = str(train(str(folder.path), "--backend", "nccl", "--gpus", ""))
    assert torch.cuda.is_available() or '"nccl" needs GPUs' in told


@pytest.mark.parametrize("alone", [(), ("--nproc-per-node", "4")])
def test_ranks_of_one_machine_are_started(folder, alone):
    assert NOTHING_TO_TRAIN in str(train(str(folder.path), *alone))
