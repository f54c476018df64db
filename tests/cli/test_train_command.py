"""`chess-snn train` refuses ranks that others could reach, unless their network is trusted."""

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.cli.main import app


def train(*arguments: str) -> BaseException | None:
    return CliRunner().invoke(app, ["train", *arguments]).exception


@pytest.mark.parametrize("reachable", [
    ("--nnodes", "2", "--rdzv-endpoint", "node-0:29400"),
    ("--rdzv-endpoint", "node-0:29400"),
    ("--local-addr", "192.0.2.7"),
])
def test_ranks_that_others_could_reach_need_a_trusted_network(tmp_path: Path, reachable):
    missing = str(tmp_path / "no-campaign")  # what is refused next, so that nothing is trained
    assert "say --trust-network" in str(train(missing, *reachable))
    trusted = str(train(missing, *reachable, "--trust-network"))
    assert missing in trusted
    assert "trust" not in trusted


@pytest.mark.parametrize(("option", "value", "setting"), [
    ("--batch-size", "64", "training.batch_size = 256"),
    ("--learning-rate", "0.5", "training.learning_rate = 0.006"),
    ("--precision", "fp32", "training.precision = bf16"),
])
def test_a_campaign_keeps_what_its_results_depend_on(tmp_path: Path, option, value, setting):
    folder = CampaignFolder.create(tmp_path / "c", load_config())
    told = str(train(str(folder.path), option, value))
    assert f"trains with {setting}" in told
    assert f"chess-snn campaign fork {folder.path}" in told


def test_a_campaigns_own_settings_and_a_pace_of_its_own_are_taken(tmp_path: Path):
    folder = CampaignFolder.create(tmp_path / "c", load_config())
    told = str(train(
        str(folder.path), "--batch-size", "256", "--learning-rate", "6e-3", "--precision", "bf16",
        "--backend", "gloo",
    ))
    assert "has trained every iteration that it began" in told
    told = str(train(str(folder.path), "--backend", "nccl", "--gpus", ""))
    assert torch.cuda.is_available() or '"nccl" needs GPUs' in told


def test_ranks_of_one_machine_need_no_trust(tmp_path: Path):
    missing = str(tmp_path / "no-campaign")
    for alone in ((), ("--nproc-per-node", "8"), ("--local-addr", "127.0.0.1")):
        told = str(train(missing, *alone))
        assert missing in told
        assert "trust" not in told
