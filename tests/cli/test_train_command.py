"""`chess-snn train` refuses ranks that others could reach, unless their network is trusted."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

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


def test_ranks_of_one_machine_need_no_trust(tmp_path: Path):
    missing = str(tmp_path / "no-campaign")
    for alone in ((), ("--nproc-per-node", "8"), ("--local-addr", "127.0.0.1")):
        told = str(train(missing, *alone))
        assert missing in told
        assert "trust" not in told
