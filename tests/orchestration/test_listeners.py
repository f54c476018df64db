"""Prefect shows a running campaign: pace, time left, and a line for each worker."""

import logging
import time
from dataclasses import replace
from datetime import datetime

import psutil
import pytest
from prefect import flow, get_client
from small_campaigns import begin, make_campaign, receipt_of

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.store.plans import Length
from chess_snn.campaign.store.receipt_parts import PromotionFacts
from chess_snn.campaign.viewing.alarms import Alarm
from chess_snn.campaign.viewing.events import (
    AlarmRaised,
    CampaignFinished,
    Message,
    StageProgress,
    WorkerProgress,
    WorkersProgress,
)
from chess_snn.flows.links import artifact_key
from chess_snn.flows.listeners import log_file, log_lines, progress_artifact, table_rows
from chess_snn.flows.servers import prefect_server
from chess_snn.tasks.progress import ProgressBoard
from chess_snn.tasks.remote import Done
from chess_snn.tasks.summary_lines import (
    promotion_line,
    shard_line,
)

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")
pytest.importorskip("mlflow")


WORKERS = WorkersProgress((
    WorkerProgress("box-a/gpu0-1", "GPU 0 of box-a", "", 90, 2.5, 0.0, 1.0, 2**30, 0.87),
    WorkerProgress("box-b/cpu-1", "CPU of box-b", "", 30, 0.5, 30.0, 0.0, 2**29, None),
))
UNDER_WAY = StageProgress(3, "self-play", "games", 120, 400, per_s=3.0)
STOPPED = StageProgress(3, "self-play", "games", 160, 400, per_s=3.0, has_ended=True)


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
    listen(STOPPED)
    ended = artifact()
    listen(CampaignFinished(Length(4)))
    return under_way, ended, artifact()


@pytest.mark.slow
def test_the_artifact_has_pace_time_left_and_a_line_for_each_worker(tmp_path, monkeypatch):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    with prefect_server(tmp_path):
        (share, lines), (last_share, last_lines), (final_share, final_lines) = campaign()
    workers = [str(WORKERS), *map(str, WORKERS.workers)]
    assert share == pytest.approx(30.0)
    assert lines == [str(UNDER_WAY), *workers]
    assert (last_share, final_share) == (pytest.approx(40.0), pytest.approx(100.0))
    assert final_lines[1:] == workers
    assert last_lines == [str(STOPPED), *workers]


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
    assert len(caplog.records) == 1


ALARM = Alarm("replay starving", 4, "5.7 batches", "play more games")


def test_an_alarm_is_a_warning_in_the_log(caplog):
    listen = log_lines(logging.getLogger("campaign"))
    with caplog.at_level(logging.INFO, "campaign"):
        listen(Message("it begins"))
        listen(AlarmRaised(ALARM))
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    assert str(ALARM) in caplog.text


# Lines of tasks and the table of an iteration, from made receipts.


WORKER = "box-a/gpu1-3"
GPU = "GPU 1 (NVIDIA H200) of box-a"
CHALLENGE = PromotionFacts(
    candidate=2, champion=1, verdict="reject", llr=-3.0, lower=-2.9, upper=2.9, elo0=0.0,
    elo1=75.0, simulations=8, games=8, wins=1, draws=3, losses=4, truncated=2,
    pairs=[2, 1, 1, 0, 0],
    score=0.3125,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = make_campaign(tmp_path_factory.mktemp("table") / "My Run_1")
    begin(folder, 0)
    return folder


@pytest.fixture(scope="module")
def receipt(folder):
    return receipt_of(folder, 1)


def test_the_line_of_a_shard_counts_its_outcomes_and_says_who_has_played_it(receipt):
    facts = receipt.shards[0]
    line = shard_line(Done(facts, WORKER, GPU, facts.statistics.seconds))
    for part in ("box-a", "100 games", "30 white", "20 black", "2.50 games/s"):
        assert part in line
    assert "box-a" not in shard_line(Done(facts, WORKER, GPU, 0.0)), "it was committed already"


def test_the_decision_names_the_champion_and_the_verdict(receipt):
    assert "generation 2" in promotion_line(receipt)
    refused = promotion_line(replace(receipt, champion=1, promotion=CHALLENGE))
    assert "generation 1" in refused
    assert str(CHALLENGE) in refused


def test_the_table_has_results_and_the_decision(folder, receipt):
    rows = table_rows(folder, receipt)
    assert all(set(row) == {"part", "figure", "value"} for row in rows)
    values = {(row["part"], row["figure"]): row["value"] for row in rows}
    assert values["self-play", "games"] == f"{receipt.statistics.games:,}"
    assert values["learning", "value loss"] == f"{receipt.training.metrics['value_loss']:.3f}"
    match = receipt.matches[0]
    assert values["strength", match.name] == match.score_text
    assert values["strength", "decision"] == promotion_line(receipt)


def test_the_tables_of_a_campaign_share_a_key_that_prefect_takes(folder):
    assert artifact_key(folder) == f"campaign-my-run-1-{folder.campaign_id[:8]}"
