"""Small experiments: on a dataset in this process, and with campaigns in processes of their own."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from made_imports import make_import
from small_campaigns import SMALLEST_NETWORK

from chess_snn.campaign.configuration.loading import format_toml
from chess_snn.campaign.machine.training_launch import train_network
from chess_snn.campaign.store.naming import HOME_VARIABLE
from chess_snn.cli import experiment as command
from chess_snn.cli import main
from chess_snn.experiment import judging

ONE_BY_ONE = threading.Lock()
NAMES = ("lif", "relu")
SEEDS = (1, 2)


def settings_of(*texts):
    """Settings of a file from texts such as ``net.blocks=1``."""
    pairs = (text.split("=", 1) for text in texts)
    return {name: int(value) if value.isdecimal() else value for name, value in pairs}


SMALL = {
    "name": "small", "question": "Which neurons?", "seeds": list(SEEDS),
    "start": {"dataset": "some", "preset": "smoke"}, "budget": {"epochs": 1},
    "settings": settings_of(*SMALLEST_NETWORK, "training.batch_size=64") | {
        "net.rule_planes": False, "net.target_readout": False, "net.precision": "bf16",
    },
    "variants": {
        "lif": {"net.activation": "lif", "net.ticks": 1, "net.levels": 0},
        "relu": {"net.activation": "relu", "net.levels": 0},
    },
    "judge": {
        "simulations": [2], "games": 2, "rating_games": 10, "cost": True, "equal_time": True,
    },
}
"""Two variants and two seeds on a dataset, with all that a judge does."""

PLAYED = {
    "name": "played", "seeds": [1, 2], "start": {"preset": "smoke"}, "budget": {"games": 24},
    "settings": settings_of(
        *SMALLEST_NETWORK, "self_play.games_per_iteration=12", "self_play.max_plies_first=20",
        "self_play.max_plies_last=20", "search.simulations_first=2", "search.simulations_last=2",
        "search.considered_actions=2", "training.batch_size=32", "training.micro_batch=32",
        "evaluation.every=1000", "promotion.max_openings=2",
    ) | {"evaluation.ladder_test": False},
    "variants": {"baseline": {}, "fast": {"training.learning_rate": 0.02}},
    "judge": {"simulations": [2], "games": 10},
}
"""Four campaigns of two iterations."""


def begin(root: Path, body=SMALL) -> Path:
    """A folder with games and an experiment's file."""
    make_import(root / "some", num_shards=3)
    (root / "small.toml").write_text(format_toml(body))
    return root


def run(root: Path, *arguments: str, group: tuple[str, ...] = ("experiment",)) -> int:
    """The exit code of a command in ``root``, without MLflow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["chess-snn", *group, *arguments])
        patch.setattr(command, "record_experiment", lambda body, files: None)
        patch.setattr(judging, "COST_GAMES", 2)
        patch.setattr(judging, "_COST_PLIES", 6)
        patch.setenv(HOME_VARIABLE, str(root / "home"))
        patch.chdir(root)
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)


def train_here(work, *_) -> None:
    """Train the network of ``work`` in this process: others would load torch first."""
    with ONE_BY_ONE:
        train_network(work.config, work.path, num_threads=1)


def finish(root: Path, body=SMALL) -> Path:
    """A folder whose experiment has run."""
    begin(root, body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "run_on", train_here)
        assert run(root, "run", "small.toml") == 0
    return root


def results(root: Path):
    return json.loads((root / "small" / "results.json").read_text())


def start_process(root: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    """The command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "chess_snn", "experiment", *arguments], cwd=root,
        env=os.environ | {HOME_VARIABLE: str(root / "home")},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
