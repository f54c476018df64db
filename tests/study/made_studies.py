"""Small studies of few games of chess, in this process or in one of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_imports import make_import
from small_campaigns import SMALLEST_NETWORK

from chess_snn.campaign.store.naming import HOME_VARIABLE
from chess_snn.cli import main
from chess_snn.cli import study as command
from chess_snn.study import run as work

SMALL = (
    "study", "out", "--games", "some", "--ticks", "1", "--relu", "--variant",
    "slow:net.activation=ilif,net.ticks=0,net.levels=2,net.precision=bf16", "--simulations", "2",
    "--rating-games", "10", "--match-games", "2", "--threads", "1",
    *(part for setting in (*SMALLEST_NETWORK, "training.batch_size=64")
      for part in ("--set", setting)),
)
"""Three networks with one budget, and in equal time."""


def run(root: Path, *arguments: str) -> int:
    """The exit code of a command in ``root``, without MLflow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["chess-snn", *arguments])
        patch.setattr(command, "record_study", lambda body, files: None)
        patch.setattr(work, "COST_GAMES", 2)
        patch.setattr(work, "_COST_PLIES", 6)
        patch.setenv(HOME_VARIABLE, str(root / "home"))
        patch.chdir(root)
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)


def run_process(root: Path, environment: dict[str, str], *arguments: str) -> int:
    """The exit code of a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "chess_snn", *arguments], cwd=root, check=False, timeout=120,
        capture_output=True, env=os.environ | environment | {HOME_VARIABLE: str(root / "home")},
    ).returncode


def begin(root: Path) -> Path:
    """A folder with games."""
    make_import(root / "some", num_shards=3)
    return root
