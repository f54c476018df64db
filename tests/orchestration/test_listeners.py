"""What Prefect shows of a campaign that runs: pace, time left, and a line for each worker."""

import logging
import time
from datetime import datetime

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")

import psutil  # noqa: E402
from prefect import flow, get_client  # noqa: E402

from chess_snn.campaign import CampaignFolder, load_config  # noqa: E402
from chess_snn.campaign.viewing.events import (  # noqa: E402
    Message,
    StageProgress,
    WorkerProgress,
    WorkersProgress,
)
from flows.listeners import log_file, log_lines  # noqa: E402
from flows.prefect_pages import progress_artifact  # noqa: E402
from flows.servers import prefect_server  # noqa: E402
from tasks.progress import ProgressBoard  # noqa: E402

WORKERS = WorkersProgress((
    WorkerProgress("box-a/gpu0-1", "GPU 0 of box-a", "", 90, 2.5, 0.0, 1.0, 2**30, 0.87),
    WorkerProgress("box-b/cpu-1", "CPU of box-b", "", 30, 0.5, 30.0, 0.0, 2**29, None),
))
UNDER_WAY = StageProgress(3, "self-play", "games", 120, 400, per_s=3.0)
ENDED = StageProgress(3, "self-play", "games", 400, 400, per_s=3.0, has_ended=True)


def artifact() -> tuple[float, list[str]]:
    """The bar in percent, and the lines under it."""
    with get_client(sync_client=True) as client:
        (found,) = [each for each in client.read_artifacts() if each.key == "iteration-progress"]
    return found.data, found.description.split("\n\n")


@flow
def campaign():
    listen = progress_artifact()
    listen(WORKERS)
    listen(UNDER_WAY)
    under_way = artifact()
    listen(ENDED)
    return under_way, artifact()


@pytest.mark.slow
def test_the_artifact_has_pace_time_left_and_a_line_for_each_worker(tmp_path, monkeypatch):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    with prefect_server(tmp_path):
        (share, lines), (last_share, last_lines) = campaign()
    workers = [
        "2 workers: 120 games, 3.0/s, 1.0 cores, GPUs 87%, silent: box-b/cpu-1",
        "box-a/gpu0-1: 90 games, 2.5/s, 1.0 cores, 1.0 GiB, GPU 87%",
        "box-b/cpu-1: 30 games, 0.5/s, 0.0 cores, 0.5 GiB, silent for 30 s",
    ]
    assert share == pytest.approx(30.0)
    assert lines == ["iteration 3 self-play: 120 of 400 games, 3.0/s, 93 s left", *workers]
    assert last_share == pytest.approx(100.0)
    assert last_lines == ["iteration 3 self-play: 400 of 400 games, 3.0/s", *workers]


@flow
def campaign_whose_server_freezes(logger):
    """How long three lines and the end of a stage take, in seconds, while it is frozen."""
    board = ProgressBoard([progress_artifact(), log_lines(logger)], period_s=0.1)
    servers = psutil.Process().children(recursive=True)
    with board.running(), board.stage(0, "self-play", "games", 10):
        for server in servers:
            server.suspend()
        start_s = time.monotonic()
        time.sleep(3.0)  # the artifact is updated every two
        for number in range(3):
            board.message(f"worker {number} was killed")
        told_s = time.monotonic() - start_s
    ended_s = time.monotonic() - start_s
    for server in servers:
        server.resume()
    return told_s, ended_s


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_server_that_freezes_keeps_nobody_waiting_bug(tmp_path, monkeypatch, caplog):
    """Its pages were brought up to date first, for minutes."""
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    logger = logging.getLogger("campaign")
    with caplog.at_level(logging.INFO, "campaign"), prefect_server(tmp_path):
        told_s, ended_s = campaign_whose_server_freezes(logger)
    assert told_s < 10
    assert ended_s < 20
    assert [f"worker {n} was killed" in caplog.text for n in range(3)] == [True] * 3


def test_the_log_file_has_a_line_a_message_and_its_time(tmp_path):
    folder = CampaignFolder.create(tmp_path / "campaign", load_config("smoke"))
    for text in ("it begins", "two\nlines"):
        log_file(folder)(Message(text))
    times, lines = zip(
        *(line.split(" ", 1) for line in folder.log_file.read_text().splitlines()), strict=True
    )
    assert lines == ("it begins", "two lines")
    assert all(datetime.fromisoformat(text).tzinfo is not None for text in times)


def test_a_log_file_that_cannot_be_written_is_told_once_and_ends_nothing(tmp_path, caplog):
    folder = CampaignFolder.create(tmp_path / "campaign", load_config("smoke"))
    folder.log_file.mkdir()
    listen = log_file(folder)
    with caplog.at_level(logging.WARNING):
        listen(Message("it begins"))
        listen(Message("it goes on"))
    assert caplog.text.count("campaign.log lacks lines") == 1
