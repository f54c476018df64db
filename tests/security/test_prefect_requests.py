"""Requests to Prefect servers of ours, as pages of other sites and other users can send them.

A request may have an effect only if it has the credentials and no page of another site sent it.
"""

import asyncio
import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

from browser_requests import EVIL, FROM_ELSEWHERE, JSON, basic, post  # noqa: E402
from prefect.client.orchestration import get_client  # noqa: E402
from prefect.settings import (  # noqa: E402
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_SERVER_API_AUTH_STRING,
    temporary_settings,
)
from services_home import services_up  # noqa: E402
from starlette.testclient import TestClient  # noqa: E402
from starlette.websockets import WebSocketDisconnect  # noqa: E402
from websockets.asyncio.client import connect  # noqa: E402
from websockets.exceptions import WebSocketException  # noqa: E402

from chess_snn.credentials import Credentials  # noqa: E402
from chess_snn.flows.prefect_access import CREDENTIALS_FILE, kept_credentials, sign_in_link  # noqa: E402
from chess_snn.flows.servers import prefect_server  # noqa: E402

NOT_OWN = FROM_ELSEWHERE | {"a page of another port": JSON | {"Origin": "http://127.0.0.1:1"}}
PLANTED = f"chess-snn:{43 * 'a'}"
"""Credentials in a campaign's folder that was copied from elsewhere."""
UNKNOWN = {
    "nothing": "", "what was planted": PLANTED, "a wrong password": "chess-snn:wrong",
    "a wrong user": "me:{password}",
}
SOCKETS = ("/events/in", "/events/out", "/logs/out")


@pytest.fixture(scope="module")
def app() -> Iterator[TestClient]:
    """The application alone, which begins to answer at once; without a database."""
    from chess_snn.flows.prefect_app import create_app  # noqa: PLC0415 - takes seconds
    with temporary_settings({PREFECT_SERVER_API_AUTH_STRING: "me:a-long-password"}):
        application = create_app()
    return TestClient(application, "http://127.0.0.1:4200", raise_server_exceptions=False)


@pytest.mark.parametrize("sent", NOT_OWN.values(), ids=NOT_OWN)
@pytest.mark.parametrize("path", ["/", "/api/health", "/api/flows/", "/sign-in", "/ui-settings"])
def test_pages_of_other_sites_get_nothing_even_with_the_credentials(app, sent, path):
    for method in ("GET", "POST", "OPTIONS"):
        answer = app.request(method, path, headers=sent | basic("me:a-long-password"))
        assert answer.status_code in (400, 403), method
        assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("given", ["", "me:wrong-password", "you:a-long-password", "me:", ":"])
def test_the_interface_needs_the_credentials(app, given):
    for method, path in (("POST", "/api/flows/"), ("GET", "/api/admin/settings"),
                         ("DELETE", "/api/flows/1"), ("POST", "/api/admin/database/clear")):
        answer = app.request(method, path, headers=JSON | basic(given))
        assert answer.status_code == 401, path


@pytest.mark.parametrize("sent", NOT_OWN.values(), ids=NOT_OWN)
def test_sockets_are_not_opened_for_pages_of_other_sites(app, sent):
    for path in SOCKETS:
        with pytest.raises(WebSocketDisconnect) as closed, app.websocket_connect(
            f"/api{path}", subprotocols=["prefect"], headers=sent
        ):
            pytest.fail("it was opened")
        assert closed.value.code == 1008


def test_no_page_may_frame_the_pages_of_the_server(app):
    for path in ("/", "/v2/dashboard", "/sign-in", "/api/health"):
        answer = app.get(path)
        assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_credentials_are_made_once_for_this_user_alone(tmp_path):
    made = kept_credentials(tmp_path / "services")
    file = tmp_path / "services" / CREDENTIALS_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert kept_credentials(tmp_path / "services") == made == Credentials.parse(
        file.read_text().strip()
    )
    assert len(made.password) >= 43
    assert kept_credentials(tmp_path / "other") != made
    assert made.password not in repr(made)


@pytest.mark.parametrize("damage", [
    "", "chess-snn:short\n", "me:another-long-password\n", "\0" * 54, f"chess-snn:{43 * 'é'}\n",
])
def test_a_damaged_file_of_credentials_is_made_again(tmp_path, damage):
    file = tmp_path / CREDENTIALS_FILE
    file.write_text(damage)
    made = kept_credentials(tmp_path)
    assert made == kept_credentials(tmp_path)
    assert made.text + "\n" == file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_has_the_credentials_where_browsers_send_them_to_no_server():
    link = sign_in_link("http://127.0.0.1:4200/api", Credentials("me", "a#long/pass word"))
    assert link == "http://127.0.0.1:4200/sign-in#me:a%23long%2Fpass%20word"


@dataclass(frozen=True)
class Running:
    """A server, and how its owner is let in."""

    api_url: str
    credentials: str
    mlflow_url: str | None

    def flows(self) -> list[str]:
        with temporary_settings({
            PREFECT_API_URL: self.api_url, PREFECT_API_AUTH_STRING: self.credentials,
        }), get_client(sync_client=True) as client:
            return [flow.name for flow in client.read_flows()]


@pytest.fixture(scope="module", params=["embedded", "up"])
def running(request, tmp_path_factory) -> Iterator[Running]:
    """The Prefect server of a campaign, and that of `chess-snn up`."""
    directory: Path = tmp_path_factory.mktemp("prefect")
    if request.param == "up":
        with services_up(directory / "home") as home:
            yield Running(home.api_url, home.credentials, home.mlflow_url)
        return
    (directory / CREDENTIALS_FILE).write_text(f"{PLANTED}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PREFECT_API_URL", raising=False)
        with prefect_server(directory) as api_url:
            yield Running(api_url, kept_credentials(directory).text, None)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_only_the_owner_changes_what_a_server_has(running):
    before, url = running.flows(), f"{running.api_url}/flows/"
    password = running.credentials.partition(":")[2]
    for sent in NOT_OWN.values():
        assert post(url, {"name": "evil"}, sent | basic(running.credentials)) in (400, 403)
    for given in UNKNOWN.values():
        for kind in ("application/json", "text/plain", ""):
            sent = {"Content-Type": kind} | basic(given.format(password=password))
            assert post(url, {"name": "evil"}, sent) == 401
    assert running.flows() == before
    assert post(url, {"name": "mine"}, JSON | basic(running.credentials)) == 201
    assert sorted(running.flows()) == sorted([*before, "mine"])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", SOCKETS)
def test_sockets_need_the_credentials(running, path):
    async def first_answer(token: str, origin: str | None) -> str:
        address = running.api_url.replace("http", "ws") + path
        try:
            async with connect(address, origin=origin, subprotocols=["prefect"]) as socket:
                await socket.send(json.dumps({"type": "auth", "token": token}))
                return json.loads(await socket.recv())["type"]
        except WebSocketException:
            return "refused"

    own = running.api_url.removesuffix("/api")
    for token, origin, expected in (
        (running.credentials, None, "auth_success"), (running.credentials, own, "auth_success"),
        (running.credentials, EVIL, "refused"), (running.credentials, "null", "refused"),
        ("chess-snn:wrong", None, "refused"), ("", None, "refused"),
    ):
        assert asyncio.run(first_answer(token, origin)) == expected, (token, origin)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sent", FROM_ELSEWHERE.values(), ids=FROM_ELSEWHERE)
def test_mlflow_answers_no_page_of_another_site(running, sent):
    if running.mlflow_url is None:
        pytest.skip("a campaign's own MLflow is a file; `ui` starts its server: test_listening.py")
    url = f"{running.mlflow_url}/api/2.0/mlflow/experiments/create"
    assert post(url, {"name": "evil"}, sent) == 403
