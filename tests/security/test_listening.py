"""Every socket of a campaign, of `ui` and of training by ranks that listens does so on loopback."""

import ipaddress
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(1800)]
psutil = pytest.importorskip("psutil")
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

import small_campaigns  # noqa: E402
from browser_requests import FROM_ELSEWHERE, JSON, basic, post  # noqa: E402
from campaign_driver import kill_campaign, launch, settings  # noqa: E402

ROOT = Path(__file__).parents[2]
WAIT_S = 1500.0
POLL_S = 0.05
SETTINGS = settings(
    campaign__iterations=1, self_play__games_per_iteration=16, self_play__games_per_shard=8,
    self_play__max_plies_first=20, self_play__max_plies_last=20, search__simulations_first=2,
    search__simulations_last=2, training__batch_size=64, training__micro_batch=16,
    evaluation__opponents='["random"]', evaluation__num_openings=1, evaluation__max_plies=10,
    evaluation__won_positions=2, execution__workers=2, execution__training_ranks=2,
)
def listeners(process: "psutil.Process") -> dict[tuple[str, int], str]:
    """Address and port of every socket that it or a descendant listens on, and its command."""
    found = {}
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return found
    for member in family:
        try:
            for connection in member.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    found[tuple(connection.laddr)] = " ".join(member.cmdline())
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it has just ended
    return found


def off_loopback(found: dict[tuple[str, int], str]) -> dict[tuple[str, int], str]:
    return {
        place: command for place, command in found.items()
        if not ipaddress.ip_address(place[0]).is_loopback
    }


def test_a_campaign_with_workers_and_ranks_listens_on_loopback_alone(tmp_path):
    process = launch("start", "--dir", str(tmp_path / "c"), *SETTINGS, log=tmp_path / "log")
    watched, found, commands = psutil.Process(process.pid), {}, set()
    deadline = time.monotonic() + WAIT_S
    try:
        while process.poll() is None and time.monotonic() < deadline:
            found |= (now := listeners(watched))
            commands |= set(now.values())  # who made a socket for a child keeps it longer
            time.sleep(POLL_S)
        assert process.returncode == 0, (tmp_path / "log").read_text()[-3000:]
    finally:
        if process.poll() is None:
            kill_campaign(process)
    assert off_loopback(found) == {}
    for server in ("chess_snn.flows.prefect_app", "training_program"):
        assert any(server in command for command in commands), (server, commands)
    assert len(found) >= 6, "Prefect, scheduler, dashboard, two nannies, two workers"


@pytest.fixture
def ui(tmp_path):
    """`chess-snn ui` on a campaign, once it is up; its addresses by name."""
    folder = small_campaigns.make_campaign(tmp_path / "c")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT", "MLFLOW"))}
    process = subprocess.Popen(
        [sys.executable, "-m", "chess_snn", "ui", str(folder.path)], cwd=ROOT, env=inherited,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    said = ""
    while "Ctrl-C ends" not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    yield process, dict(re.findall(r"(Prefect|MLflow)\s+(http\S+)", said))
    process.terminate()
    process.communicate(timeout=WAIT_S)


def test_ui_listens_on_loopback_and_its_pages_are_for_its_user_alone(ui):
    process, addresses = ui
    found = listeners(psutil.Process(process.pid))
    assert len(found) >= 2
    assert off_loopback(found) == {}
    prefect, _, password = addresses["Prefect"].partition("/sign-in#")
    flows, experiments = f"{prefect}/api/flows/", "/api/2.0/mlflow/experiments/create"
    owner = basic(password)
    assert post(flows, {"name": "evil"}, JSON) == 401
    for sent in FROM_ELSEWHERE.values():
        assert post(flows, {"name": "evil"}, sent | owner) in (400, 403)
        assert post(addresses["MLflow"] + experiments, {"name": "evil"}, sent) == 403
    assert post(flows, {"name": "evil"}, JSON | owner) == 201, "it was not there before"
