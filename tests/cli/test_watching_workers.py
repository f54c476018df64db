"""Workers in a watched campaign's picture and lines, and in the terminal that runs it."""

import io
from dataclasses import replace

import pytest
import small_campaigns as made
from rich.console import Console

from chess_snn.campaign import campaign_lock
from chess_snn.campaign.viewing.events import (
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
from chess_snn.cli.dashboard import dashboard, workers_table
from chess_snn.cli.watch import campaign_terminal

FIRST = WorkerProgress(
    "box-a/cpu-0", "the processor of box-a", "iteration 0 self-play, shard 1: 40 of 100", 148, 3.1,
    0.4, 0.98, 1 << 29, None,
)
SECOND = replace(FIRST, name="box-b/gpu0-0", device="GPU 0 of box-b", doing="", gpu_share=0.87)
STAGE = StageProgress(0, "self-play", "games", 296, 400, per_s=6.2)


@pytest.fixture
def folder(tmp_path):
    folder = made.make_campaign(tmp_path / "campaign")
    with campaign_lock(folder):
        made.begin(folder, 0)
        yield folder


def drawn(renderable) -> str:
    text = io.StringIO()
    Console(file=text, width=140, color_system=None, highlight=False).print(renderable)
    return text.getvalue()


def picture(folder) -> str:
    view = CampaignWatch(folder.path).look()
    return drawn(dashboard(view, Console(file=io.StringIO(), width=140)))


def test_the_picture_has_a_row_for_each_worker(folder):
    assert "workers" not in picture(folder)
    write_live(folder, Live((STAGE,), (FIRST, SECOND)))
    lines = picture(folder).splitlines()
    (stage,) = [line for line in lines if "iteration 0 self-play: " in line]
    assert "iteration 0 self-play: 296 of 400 games, 6.2/s, 17 s left, for 0:0" in stage
    assert any("2 workers: 296 games, 6.2/s, 2.0 cores, GPUs 87%" in line for line in lines)
    (first,) = [line for line in lines if "box-a/cpu-0" in line]
    for told in ("148 games", "3.1/s", "0.5 GiB", "seen 0 s ago", "shard 1: 40 of 100"):
        assert told in first
    (second,) = [line for line in lines if "box-b/gpu0-0" in line]
    assert second.rstrip().endswith("idle")


def test_after_the_campaign_has_stopped_nobody_is_at_work(folder, tmp_path):
    write_live(folder, Live((STAGE,), (FIRST,)))
    other = made.make_campaign(tmp_path / "stopped")
    made.begin(other, 0)
    write_live(other, Live((STAGE,), (FIRST,)))
    assert "box-a/cpu-0" not in picture(other)


def test_many_workers_are_told_of_together():
    many = [replace(FIRST, name=f"box-{i}/cpu-0") for i in range(MOST_WORKERS + 1)]
    assert drawn(workers_table(many)).splitlines() == [
        f"{MOST_WORKERS + 1} workers: {148 * (MOST_WORKERS + 1):,} games, 52.7/s, 16.7 cores"
    ]


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
