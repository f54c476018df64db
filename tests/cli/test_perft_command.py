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
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
ENDGAME = "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"
PROMOTIONS = "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1"
FIFTH = "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8"
SIXTH = "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10"


@pytest.mark.parametrize(("position", "depth", "count"), [
    ("startpos", 0, 1), ("startpos", 4, 197_281), (KIWIPETE, 3, 97_862), (ENDGAME, 5, 674_624),
    (PROMOTIONS, 4, 422_333), (FIFTH, 3, 62_379), (SIXTH, 3, 89_890),
])
def test_published_counts(chess_snn, position, depth, count):
    done = chess_snn("perft", position, depth)
    assert (done.returncode, done.stdout) == (0, f"{count}\n")


def test_divide_names_every_first_move_and_adds_up(chess_snn):
    *lines, total = chess_snn("perft", "startpos", 3, "--divide").stdout.splitlines()
    counts = {move: int(count) for move, count in (line.split(": ") for line in lines)}
    assert len(counts) == 20
    assert counts["e2e4"] == 600
    assert sum(counts.values()) == int(total) == 8902


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
    assert done.stderr == "error: cannot write what was asked for: No space left on device\n"
