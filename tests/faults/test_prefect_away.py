"""The Prefect server is killed: for a while the campaign waits, for good it stops resumably."""

import json
import os
import signal
import time
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

from chess_snn.ports import free_port  # noqa: E402
from flows.prefect_access import AUTH_VARIABLE, kept_credentials  # noqa: E402
from flows.server_processes import Server  # noqa: E402
from flows.servers import API_URL_VARIABLE, prefect_spec  # noqa: E402

AWAY_S = 15.0


@pytest.mark.fault(4)
@pytest.mark.parametrize("after", ["games/iter-000000/shard-0000", "checkpoints/gen-000001"])
def test_a_campaign_whose_prefect_server_is_away_for_a_while_goes_on(
    tmp_path: Path, undisturbed_small: Path, after: str
) -> None:
    """In the middle of an iteration, and where the next one begins."""
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


@pytest.mark.fault(4)
def test_a_campaign_without_its_prefect_server_stops_and_resumes(
    tmp_path: Path, undisturbed_small: Path
) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    process = launch("start", "--dir", str(path), *SMALL_OPTIONS, log=log)
    wait_until(lambda: len(committed_shards(path, 0)) >= 1, process, log)
    started = descendants(process)
    server = json.loads((path / "services" / "prefect-server.json").read_text())
    os.killpg(server["pid"], signal.SIGKILL)
    assert process.wait(2 * FINISH_TIMEOUT_S) == 2, log.read_text()[-3000:]
    assert "error: the Prefect server at http://127.0.0.1:" in log.read_text()
    assert_gone(started)

    finish(launch("resume", str(path), log=log), log)
    assert_same_campaign(path, undisturbed_small)
