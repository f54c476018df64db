"""Whole games against Stockfish under two managers that have nothing in common.

Full matches: ``python -m benchmarks uci-games``; see docs/playing.md.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
XBOARD_NEEDS = ("xboard", "polyglot", "xvfb-run")
NUM_GAMES = 2


def is_here(program):
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/games") is not None


def find_stockfish():
    if not is_here("stockfish"):
        pytest.skip("Stockfish is not installed (make stockfish)")
    return shutil.which("stockfish", path=f"{os.environ['PATH']}:/usr/games")


def play(manager, model, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", "uci-games", "--manager", manager,
         "--model", str(model), "--opponent", find_stockfish(), "--nodes", "20",
         "--games", str(NUM_GAMES), "--clock-s", "10", *map(str, arguments)],
        capture_output=True, text=True, timeout=600, check=False, cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )


@pytest.mark.slow
@pytest.mark.timeout(700)
def test_games_under_python_chess(model):
    done = play("python-chess", model)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(line.startswith("game ") for line in done.stderr.splitlines()) == NUM_GAMES


@pytest.mark.slow
@pytest.mark.timeout(700)
@pytest.mark.skipif(not all(map(is_here, XBOARD_NEEDS)), reason="XBoard is not installed")
def test_games_under_xboard(model, tmp_path):
    done = play("xboard", model, "--pgn", tmp_path / "games.pgn")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(line.startswith("game ") for line in done.stderr.splitlines()) == NUM_GAMES
    text = (tmp_path / "games.pgn").read_text()
    assert text.count('[White "chess-snn"]') == text.count('[Black "chess-snn"]') == 1
