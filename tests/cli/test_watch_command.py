"""Watching a campaign in lines and in a picture; beginning and leaving cleanly."""

import io
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import small_campaigns as made
from rich.console import Console
from terminal import Terminal

from chess_snn.campaign import CampaignFolder, campaign_lock, write_receipt
from chess_snn.campaign.store.receipt_parts import PromotionFacts
from chess_snn.campaign.viewing.events import (
    SELF_PLAY,
    Message,
    StageProgress,
    WorkerProgress,
    WorkersProgress,
)
from chess_snn.campaign.viewing.lines import MOST_WORKERS
from chess_snn.campaign.viewing.live import Live, write_live
from chess_snn.campaign.viewing.watching import CampaignWatch
from chess_snn.cli import console as console_module
from chess_snn.cli import watch as watch_module
from chess_snn.cli.dashboard import BLOCKS, PLAIN, dashboard, sparkline, workers_table
from chess_snn.cli.watch import campaign_terminal

COMMAND = [sys.executable, "-c", "from chess_snn.cli import main; main()", "watch"]
"""The command line of these sources, wherever another one may be installed."""
SOURCES = Path(__file__).parents[2]
PATIENCE_S = 120.0
"""Loading torch takes seconds, and on a busy machine many."""


@pytest.fixture
def folder(tmp_path):
    return made.make_campaign(tmp_path / "campaign")


def finish_all(folder: CampaignFolder) -> None:
    for iteration in range(4):
        made.finish(folder, iteration)


def picture(folder: CampaignFolder, width: int = 100, height: int = 60) -> str:
    view = CampaignWatch(folder.path).look()
    return drawn(lambda console: dashboard(view, console), width, height)


def drawn(draw: Callable[[Console], object], width: int, height: int = 60) -> str:
    text = io.StringIO()
    console = Console(file=text, width=width, height=height, color_system=None, highlight=False)
    console.print(draw(console))
    return text.getvalue()


def log(folder: CampaignFolder, *lines: str) -> None:
    with folder.log_file.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def test_an_alarm_is_shown(folder, chess_snn, monkeypatch):
    monkeypatch.setattr(made, "training_metrics", lambda _: {"steps": 1.0, "samples": 100_000.0,
                                                             "holdout_value_loss_after": 1.0})
    made.finish(folder, 0)
    told = "ALARM replay starving since iteration 0"
    assert told in picture(folder)
    assert told in chess_snn("watch", folder.path, "--once").stdout


def test_what_a_candidate_came_to_is_told(folder, chess_snn):
    played = PromotionFacts(
        candidate=2, champion=1, verdict="reject", llr=-3.2, lower=-3.0, upper=3.0, elo0=0.0,
        elo1=75.0, simulations=0, games=32, wins=4, draws=9, losses=14, truncated=5,
        pairs=[5, 6, 4, 1, 0], score=0.344,
    )
    made.finish(folder, 0)
    receipt = made.finish(folder, 1)
    write_receipt(folder, replace(receipt, champion=1, promotion=played))
    told = str(played)
    assert told in picture(folder, width=200)
    lines = chess_snn("watch", folder.path, "--once").stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("iteration 1 (")]
    assert "0.344 (32)" in line
    assert told in chess_snn("campaign", "status", folder.path).stdout


def test_the_picture_shows_figures_curves_and_scores(folder):
    for iteration in range(2):
        made.finish(folder, iteration)
    made.begin(folder, 2)
    with campaign_lock(folder):
        write_live(folder, Live((StageProgress(2, SELF_PLAY, "shards", 0, 2),), ()))
        text = picture(folder)
    for part in (
        "campaign campaign  4 iterations", f"running: process {os.getpid()}", "50%, run for 3:2",
        "2 iterations finished, champion gen 2", "iteration 2 self-play: 0 of 2 shards, for 0:0",
        "policy loss          █▁ 2.900", "drawn or truncated   ▄▄ 50%",
        "positions/s          ▁█ 324", "time in the network  ▄▄ 75%",
        "random               ▇  0.850 (0.750 to 0.950)",
        "minimax:2            ▃  0.250 (0.150 to 0.350)",
        "disk ", "free",
    ):
        assert part in text


@pytest.mark.slow
def test_the_picture_fits_at_every_size(tmp_path):
    folder = made.make_campaign(tmp_path / "[bold]a", "campaign.iterations=70")
    assert picture(folder)
    for iteration in range(70):
        made.finish(folder, iteration)
    for width, height in itertools.product((20, 80, 200), (20, 60)):
        lines = picture(folder, width, height).splitlines()
        assert max(map(len, lines)) <= width
        assert lines[0].startswith("campaign [bold]a")


@pytest.mark.parametrize("arguments", [["--simple"], []])
def test_a_finished_campaign_is_told_and_the_watch_ends(chess_snn, folder, arguments):
    finish_all(folder)
    done = chess_snn("watch", folder.path, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    first, newest, last = done.stdout.splitlines()
    assert str(folder.path) in first
    assert newest.startswith("iteration 3 (100%")
    assert last.startswith("finished: ")
    assert "\x1b" not in done.stdout


def test_a_folder_that_disappears_ends_the_watch_with_one_line(refused, folder):
    made.finish(folder, 0)
    remover = threading.Timer(0.5, shutil.rmtree, [folder.path])
    remover.start()
    line = refused("watch", folder.path, "--every", "0.1", may_print=True)
    remover.join()
    assert str(folder.path) in line


def test_lines_come_as_things_happen_and_ctrl_c_leaves_cleanly(folder):
    made.finish(folder, 0)
    watching = subprocess.Popen(
        [*COMMAND, folder.path, "--every", "0.1"], cwd=SOURCES, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )
    try:
        told = [watching.stdout.readline() for _ in range(4)]
        assert told[1].startswith("iteration 0 (25%")
        assert told[2].startswith("25%, run for 1:40, ")
        assert told[3].startswith("stopped: ")
        for line in ("a worker died", "it came back"):
            log(folder, line)
            assert watching.stdout.readline() == f"{line}\n"
        with campaign_lock(folder):
            assert watching.stdout.readline().startswith("running: process ")
        stopped = watching.stdout.readline()
        assert stopped.startswith("stopped: process ")
        assert stopped.endswith(f"chess-snn campaign resume {folder.path}\n")
        watching.send_signal(signal.SIGINT)
        _, errors = watching.communicate(timeout=PATIENCE_S)
    finally:
        watching.kill()
        watching.wait()
    assert (watching.returncode, errors) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(("every", "leave"), [
    ("0.1", Terminal.interrupt), ("60", lambda terminal: terminal.press("q")),
])
def test_in_a_terminal_the_picture_is_drawn_and_the_terminal_restored(folder, every, leave):
    made.finish(folder, 0)
    with Terminal(SOURCES, "watch", folder.path, "--every", every) as terminal:
        terminal.wait_for(re.escape("\x1b[?25l"))  # the cursor is hidden
        terminal.wait_for("champion gen 1")
        leave(terminal)
        terminal.wait_for(re.escape("\x1b[?25h"))
        assert terminal.end() == 0
        assert "Traceback" not in terminal.screen


# Workers in a watched campaign's picture and lines, and in the terminal that runs it.


FIRST = WorkerProgress(
    "box-a/cpu-0", "the processor of box-a", "iteration 0 self-play, shard 1: 40 of 100", 148, 3.1,
    0.4, 0.98, 1 << 29, None,
)
SECOND = replace(FIRST, name="box-b/gpu0-0", device="GPU 0 of box-b", doing="", gpu_share=0.87)
STAGE = StageProgress(0, "self-play", "games", 296, 400, per_s=6.2)


@pytest.mark.parametrize("command", [("watch", "--once"), ("campaign", "status")])
def test_a_pipe_shows_nothing_of_what_runs_bug(folder, chess_snn, command):
    made.finish(folder, 0)
    made.begin(folder, 1)
    with campaign_lock(folder):
        write_live(folder, Live((STAGE,), (FIRST, SECOND)))
        running = chess_snn(*command, folder.path).stdout
    for part in (
        "25%, run for ", f"running: process {os.getpid()}", str(STAGE),
        "2 workers: 296 games, 6.2/s",
    ):
        assert part in running
    resume = f"chess-snn campaign resume {folder.path}"
    assert resume not in running
    stopped = chess_snn(*command, folder.path).stdout
    assert resume in stopped
    assert "self-play" not in stopped


def test_status_in_json_says_what_runs(folder, chess_snn):
    made.begin(folder, 0)
    with campaign_lock(folder):
        write_live(folder, Live((STAGE,), (FIRST,)))
        body = json.loads(chess_snn("campaign", "status", folder.path, "--json").stdout)
    assert body["state"].startswith("running: process ")
    (stage,) = body["stages"]
    assert (stage["stage"], stage["done"], stage["total"]) == ("self-play", 296, 400)
    body = json.loads(chess_snn("campaign", "status", folder.path, "--json").stdout)
    assert (body["state"].partition(":")[0], body["stages"]) == ("stopped", [])


@pytest.fixture
def begun(tmp_path):
    begun = made.make_campaign(tmp_path / "campaign")
    with campaign_lock(begun):
        made.begin(begun, 0)
        yield begun


def test_the_picture_has_a_row_for_each_worker(begun):
    assert "workers" not in picture(begun, width=140)
    write_live(begun, Live((STAGE,), (FIRST, SECOND)))
    lines = picture(begun, width=140).splitlines()
    (stage,) = [line for line in lines if "iteration 0 self-play: " in line]
    assert str(STAGE) in stage
    assert any(str(WorkersProgress((FIRST, SECOND))) in line for line in lines)
    (first,) = [line for line in lines if "box-a/cpu-0" in line]
    for told in ("148 games", "3.1/s", "0.5 GiB", "seen 0 s ago", "shard 1: 40 of 100"):
        assert told in first
    (second,) = [line for line in lines if "box-b/gpu0-0" in line]
    assert second.rstrip().endswith("idle")


def test_after_the_campaign_has_stopped_nobody_is_at_work(begun, tmp_path):
    write_live(begun, Live((STAGE,), (FIRST,)))
    other = made.make_campaign(tmp_path / "stopped")
    made.begin(other, 0)
    write_live(other, Live((STAGE,), (FIRST,)))
    assert "box-a/cpu-0" not in picture(other, width=140)


def test_many_workers_are_told_of_together():
    many = [replace(FIRST, name=f"box-{i}/cpu-0") for i in range(MOST_WORKERS + 1)]
    shown = drawn(lambda _: workers_table(many), width=140)
    assert shown.splitlines() == [str(WorkersProgress(tuple(many)))]


def test_the_terminal_shows_workers_beneath_its_bars(monkeypatch):
    text = io.StringIO()
    terminal = Console(file=text, width=140, force_terminal=True, color_system=None)
    for module in (console_module, watch_module):
        monkeypatch.setattr(module, "console", terminal)
    with campaign_terminal() as listen:
        listen(STAGE)
        listen(WorkersProgress((FIRST,)))
        listen(Message("a worker died"))
    for part in (str(STAGE), "box-a/cpu-0", "shard 1: 40 of 100", "a worker died"):
        assert part in text.getvalue()


# Curves of one line: the newest values, the least at the bottom, the greatest on top.


@pytest.mark.parametrize(("values", "width", "scale", "curve"), [
    (range(8), 60, {}, BLOCKS),
    ([0.0, 7.0], 60, {"levels": PLAIN}, "_#"),
    ([7.0, 0.0, 3.5], 60, {}, "█▁▅"),
    ([100.0, *range(8)], 8, {}, BLOCKS),
    ([0.0, 0.5, 1.0], 60, {"low": 0.0, "high": 1.0}, "▁▅█"),
    ([-1.0, 2.0], 60, {"low": 0.0, "high": 1.0}, "▁█"),
    ([3.0] * 4, 60, {}, "▄▄▄▄"),
    ([], 60, {}, ""),
    ([math.nan, math.inf], 60, {}, ""),
    ([math.nan, 1.0, 2.0], 60, {}, "▁█"),
])
def test_a_curve_has_the_newest_values_on_its_scale(values, width, scale, curve):
    assert sparkline(values, width, **scale) == curve
