"""Programs tell errors apart by their codes, so each kind has its own, and none changes."""

import importlib
import pkgutil
import subprocess
import sys

import chess_snn
import flows
import tasks
from chess_snn.errors import ChessSnnError

CODES = {
    "campaign", "campaign.locked", "campaign.removed", "cluster", "config", "corrupt",
    "corrupt.folder", "corrupt.lost", "corrupt.version", "device-trial", "engine", "engine.failed",
    "failed", "illegal-move", "memory", "position", "rating", "scheduler.lost", "server.gone",
    "server.in-use", "server.start", "services", "storage", "tracking", "training.diverged",
    "training.rank-lost", "usage", "workers.lost",
}


def kinds_of(base: type[ChessSnnError]) -> list[type[ChessSnnError]]:
    return [base, *(kind for child in base.__subclasses__() for kind in kinds_of(child))]


def test_every_kind_of_error_has_a_code_of_its_own():
    for package in (chess_snn, flows, tasks):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    codes = [kind.code for kind in kinds_of(ChessSnnError)]
    assert sorted(codes) == sorted(CODES)


def test_the_command_line_prints_the_code():
    command = [sys.executable, "-m", "chess_snn", "campaign", "start", "--set", "training.x=1"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.endswith("[config]\n")
