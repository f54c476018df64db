"""The Prefect server is killed: the campaign goes on, or stops resumably where none can start."""

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(7200)]
pytest.importorskip("prefect")

from campaign_driver import (  # noqa: E402
    FINISH_TIMEOUT_S,
    SMALL_OPTIONS,
    assert_gone,
    descendants,
    finish,
    launch,
    wait_until,
)
from small_campaigns import assert_same_campaign, committed_shards  # noqa: E402

from chess_snn.flows.prefect_access import AUTH_VARIABLE, kept_credentials  # noqa: E402
from chess_snn.flows.prefect_database import PREFECT_DATABASE  # noqa: E402
from chess_snn.flows.server_processes import Server  # noqa: E402
from chess_snn.flows.servers import API_URL_VARIABLE, prefect_spec  # noqa: E402
from chess_snn.ports import free_port  # noqa: E402

AWAY_S = 15.0
SOON_S = 2.0
"""After which the server has just been started again."""
MOST_CHARACTERS = 20_000
"""Limit of the terminal's text; Prefect's unsent events would fill far more."""


@pytest.mark.fault(4)
@pytest.mark.parametrize("after", ["games/iter-000000/shard-0000", "checkpoints/gen-000001"])
def test_a_campaign_whose_prefect_server_is_away_for_a_while_goes_on(
    tmp_path: Path, undisturbed_small: Path, after: str
) -> None:
    """The server goes in the middle of an iteration, or where the next one begins."""
    path, log = tmp_path / "c", tmp_path / "log"
    credentials = kept_credentials(tmp_path / "prefect")
    spec = prefect_spec(tmp_path / "prefect", free_port(), credentials)

    def start_server() -> Server:
        server = Server(spec)
        server.wait_until_healthy(FINISH_TIMEOUT_S)
        return server

    server = start_server()
    try:
        environment = {API_URL_VARIABLE: spec.url, AUTH_VARIABLE: credentials.text}
        process = launch(
            "start", "--dir", str(path), *SMALL_OPTIONS, log=log, environment=environment
        )
        wait_until((path / after).exists, process, log)
        os.killpg(server.process.pid, signal.SIGKILL)
        server.stop()
        time.sleep(AWAY_S)
        assert process.poll() is None, log.read_text()[-3000:]
        server = start_server()
        finish(process, log)
    finally:
        server.stop()
    assert_same_campaign(path, undisturbed_small)


def kill_server(path: Path) -> None:
    """Kill the campaign's own server, if it is not just being started."""
    record = path / "services" / "prefect-server.json"
    with suppress(ValueError, FileNotFoundError, ProcessLookupError):
        os.killpg(json.loads(record.read_text())["pid"], signal.SIGKILL)


@pytest.mark.fault(4)
def test_a_campaign_whose_own_prefect_server_is_killed_goes_on(
    tmp_path: Path, undisturbed_small: Path
) -> None:
    """Kills come in self-play, training and evaluation, and in a start after a kill."""
    path, log = tmp_path / "c", tmp_path / "log"
    process = launch("start", "--dir", str(path), *SMALL_OPTIONS, log=log)
    for moment in (
        "games/iter-000000/shard-0000", "games/iter-000000/shard-0001", "checkpoints/gen-000001",
        "receipts/iter-000000.json",
    ):
        wait_until((path / moment).exists, process, log)
        kill_server(path)
        time.sleep(SOON_S)
        kill_server(path)
    started = descendants(process)
    finish(process, log)
    assert_gone(started)
    assert_same_campaign(path, undisturbed_small)
    assert log.read_text().count("starting it again") >= 4
    assert "Traceback" not in log.read_text()
    assert len(log.read_text()) < MOST_CHARACTERS


@pytest.mark.fault(4)
def test_a_campaign_whose_prefect_database_is_lost_goes_on(
    tmp_path: Path, undisturbed_small: Path
) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    process = launch("start", "--dir", str(path), *SMALL_OPTIONS, log=log)
    wait_until((path / "games/iter-000000/shard-0000").exists, process, log)
    kill_server(path)
    database = path / "services" / PREFECT_DATABASE
    database.write_bytes(bytes(database.stat().st_size))
    finish(process, log)
    assert_same_campaign(path, undisturbed_small)
    assert len(list(database.parent.glob("prefect-damaged-*.db"))) == 1
    assert "Traceback" not in log.read_text()


@pytest.mark.fault(4)
def test_a_campaign_whose_prefect_server_cannot_start_again_stops_and_resumes(
    tmp_path: Path, undisturbed_small: Path
) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    process = launch("start", "--dir", str(path), *SMALL_OPTIONS, log=log)
    wait_until(lambda: len(committed_shards(path, 0)) >= 1, process, log)
    started = descendants(process)
    profiles = path / "services" / "prefect-home" / "profiles.toml"
    profiles.write_text("no TOML")
    kill_server(path)
    assert process.wait(2 * FINISH_TIMEOUT_S) == 2, log.read_text()[-3000:]
    assert "error: " in log.read_text()
    assert len(log.read_text()) < MOST_CHARACTERS
    assert_gone(started)

    profiles.unlink()
    finish(launch("resume", str(path), log=log), log)
    assert_same_campaign(path, undisturbed_small)
