"""``chess-snn web``: what it refuses before it serves, where it listens, and how it ends."""

import json
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest
from chromium import ROOT, serving, wait_for
from typer.testing import CliRunner

import chess_snn.web
from chess_snn.campaign.models.references import find_model
from chess_snn.cli.main import app
from chess_snn.errors import ConfigError, UsageError
from chess_snn.ports import free_port
from chess_snn.web.protocol import MAX_SIMULATIONS

SECRET = "me:a-long-password"
MOST_TO_END_S = 20.0


def refused(*arguments: str) -> str:
    """The error of the command with these arguments."""
    error = CliRunner().invoke(app, ["web", *arguments]).exception
    assert isinstance(error, UsageError), error
    return str(error)


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch):
    for name in ("CHESS_SNN_CREDENTIALS", "CHESS_SNN_CREDENTIALS_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_without_the_extra_it_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(chess_snn, "web", chess_snn.web)  # it is imported anew
    for name in [name for name in sys.modules if name.startswith("chess_snn.web")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'chess-snn[web]'" in refused()


def test_the_extra_web_alone_is_enough_to_refuse_a_port_that_is_taken(monkeypatch):
    ours = ("chess_snn.flows", "chess_snn.tasks")
    for name in [name for name in sys.modules if name.startswith(ours)]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("httpx", "prefect", "distributed", "mlflow"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setenv("CHESS_SNN_CREDENTIALS", SECRET)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "--port" in refused("--port", str(taken.getsockname()[1]))


def test_a_model_or_campaign_that_is_missing_is_refused(tmp_path):
    assert "nothing" in refused("--model", str(tmp_path / "nothing"))
    assert str(tmp_path) in refused("--campaign", str(tmp_path))


@pytest.mark.parametrize("name", ["", "@1", "@champion", "#ticks=1", "@1#ticks=1,search.kind=puct"])
def test_the_campaign_of_a_model_is_watched(played_campaign, name):
    assert find_model(f"{played_campaign.path}{name}").campaign.path == played_campaign.path


def test_other_addresses_need_a_password(monkeypatch):
    assert "CHESS_SNN_CREDENTIALS=user:password" in refused("--host", "box.example")
    monkeypatch.setenv("CHESS_SNN_CREDENTIALS", "me:short")
    error = CliRunner().invoke(app, ["web", "--host", "box.example"]).exception
    assert isinstance(error, ConfigError)
    assert "short" not in str(error)
    monkeypatch.setenv("CHESS_SNN_CREDENTIALS", SECRET)
    assert "0.0.0.0" in refused("--host", "0.0.0.0")


@pytest.mark.slow
def test_it_listens_on_loopback_alone():
    with serving() as address:
        (process,) = [
            child for child in psutil.Process().children()
            if any(f":{connection.laddr.port}/" in address
                   for connection in child.net_connections("tcp"))
        ]
        listening = [
            connection.laddr.ip for connection in process.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert listening == ["127.0.0.1"]


@pytest.mark.slow
def test_ctrl_c_ends_it_while_a_search_runs():
    connect = pytest.importorskip("websockets.sync.client").connect
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", "chess_snn", "web", "--port", str(port)], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    wait_for(address)
    with connect(f"ws://127.0.0.1:{port}/ws", origin=address) as browser:
        browser.send(json.dumps({
            "type": "search", "id": 1, "model": "shipped/chess", "simulations": MAX_SIMULATIONS,
            "game": {"kind": "chess", "moves": []},
        }))
        browser.recv()
        begun_s = time.monotonic()
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert time.monotonic() - begun_s < MOST_TO_END_S
    assert process.returncode == 0, said
    assert said.endswith("ended: the page's server\n")
    assert "Traceback" not in said
