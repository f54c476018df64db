"""`chess-snn up` on an address that others reach: refused without a password, demanded with one."""

import base64
import importlib.util
import socket
import urllib.error
import urllib.request

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(1800)]
psutil = pytest.importorskip("psutil")
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

from services_home import Home  # noqa: E402

SECRET = "canary-password"
RIGHT, WRONG = f"me:{SECRET}", "me:another-password"


@pytest.fixture
def address():
    """Address of this machine, as others reach it."""
    found = [
        entry.address for entries in psutil.net_if_addrs().values() for entry in entries
        if entry.family == socket.AF_INET and not entry.address.startswith("127.")
    ]
    if not found:
        pytest.skip("this machine has no address but loopback: that servers refuse is NOT tested")
    return found[0]


@pytest.fixture
def home(tmp_path):
    made = Home(tmp_path / "home")
    yield made
    for process in made.processes():
        process.kill()


@pytest.mark.skipif(
    importlib.util.find_spec("flask_wtf") is None,
    reason="pip install 'chess-snn[auth]': that servers ask for the password is NOT tested",
)
def test_with_a_password_every_server_refuses_whoever_has_none(home, address, tmp_path):
    file = tmp_path / "credentials"
    file.touch(0o600)
    file.write_text(RIGHT)
    home.environment["CHESS_SNN_CREDENTIALS_FILE"] = str(file)
    said = home.up("--host", address)
    assert said.returncode == 0, said.stdout + home.logs()
    assert SECRET not in said.stdout + home.logs()
    for port, path, body in (
        (home.ports[0], "/api/flows/count", b"{}"), (home.ports[0], "/api/admin/version", None),
        (home.ports[1], "/", None), (home.ports[1], "/api/2.0/mlflow/experiments/search", b"{}"),
    ):
        url = f"http://{address}:{port}{path}"
        assert status(url, body) == 401, url
        assert status(url, body, WRONG) == 401, url
    assert status(f"http://{address}:{home.ports[0]}/api/flows/count", b"{}", RIGHT) == 200
    listening = [
        (connection.laddr.ip, " ".join(process.cmdline())) for process in home.processes()
        for connection in process.net_connections("tcp") if connection.status == psutil.CONN_LISTEN
    ]
    # Prefect's worker cancels runs over loopback, and asks each for its token.
    servers = {ip for ip, command in listening if "prefect worker start" not in command}
    assert servers == {address}, listening
    assert {ip for ip, _ in listening} <= {address, "127.0.0.1"}, listening
    assert home.run("down").returncode == 0


def status(url: str, body: bytes | None, user: str = "") -> int:
    headers = {"Content-Type": "application/json"}
    if user:
        headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    try:
        return urllib.request.urlopen(urllib.request.Request(url, body, headers)).status
    except urllib.error.HTTPError as error:
        return error.code
