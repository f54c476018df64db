"""Published node counts through the command line (chessprogramming.org/Perft_Results)."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STARTED_S = 4.0
"""After which a command counts, kernels compiled; where not, Ctrl-C is heard all the same."""
HEARD_S = 60.0


@pytest.mark.parametrize(("depth", "count"), [(0, 1), (4, 197_281)])
def test_published_counts(chess_snn, depth, count):
    done = chess_snn("perft", "startpos", depth)
    assert (done.returncode, done.stdout) == (0, f"{count}\n")


def test_divide_names_every_first_move_and_adds_up(chess_snn):
    *lines, total = chess_snn("perft", "startpos", 3, "--divide").stdout.splitlines()
    counts = {move: int(count) for move, count in (line.split(": ") for line in lines)}
    assert len(counts) == 20
    assert counts["e2e4"] == 600
    assert sum(counts.values()) == int(total) == 8902


@pytest.mark.slow
def test_ctrl_c_is_heard_in_a_deep_count_bug(tmp_path):
    count = subprocess.Popen(
        [sys.executable, "-m", "chess_snn", "perft", "startpos", "9"], stderr=subprocess.PIPE,
        cwd=tmp_path, text=True,
    )
    try:
        time.sleep(STARTED_S)
        count.send_signal(signal.SIGINT)
        _, told = count.communicate(timeout=HEARD_S)
    finally:
        count.kill()
    assert count.returncode == 130, told


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_answer_that_cannot_be_written_is_one_line_bug(tmp_path):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "chess_snn", "perft", "startpos", "1"], stdout=full,
            stderr=subprocess.PIPE, cwd=tmp_path, text=True, timeout=120, check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
