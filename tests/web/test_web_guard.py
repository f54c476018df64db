"""Who may use the page: Host, Origin, credentials, and the headers that bind a browser."""

import base64
import re

import pytest
from page_browser import ADDRESS, SOCKET, Browser, chess_game
from starlette.websockets import WebSocketDisconnect

from chess_snn.errors import ConfigError
from chess_snn.web.server import STATIC, WebSettings

SECRET = "me:a-long-password"
OTHER = {"host": "box.example", "credentials": SECRET}
BOX = "http://box.example:8642"
EVERY_ADDRESS = ("0.0.0.0", "0", "00", "0x0", "0.0", "0x00.0", "00000000000", "::", "::0",
                 "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0")


def authorization(text: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "0.0.0.0"])
def test_another_host_is_refused(client, host):
    assert client.get("/", headers={"Host": host}).status_code == 400
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(
        SOCKET, headers={"Host": host}
    ):
        pass


def test_off_loopback_the_names_of_loopback_are_others(make_client):
    client = make_client(**OTHER)
    for name in ("localhost", "127.0.0.1"):
        headers = {"Host": name, **authorization(SECRET)}
        assert client.get("/", headers=headers).status_code == 400


def test_another_address_of_loopback_is_its_own_name(make_client):
    client = make_client(host="127.0.0.2")
    for name in ("127.0.0.2", "localhost"):
        headers = {"Host": name, "Origin": f"http://{name}"}
        assert client.get("/", headers=headers).status_code == 200
    assert client.get("/", headers={"Host": "127.0.0.3"}).status_code == 400


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1", "[::1]:8642"])
def test_loopback_has_several_names_and_any_port_so_that_tunnels_work(client, host):
    headers = {"Host": host, "Origin": f"http://{host}"}
    assert client.get("/", headers=headers).status_code == 200


@pytest.mark.parametrize("origin", [
    "http://evil.example", "null", "http://127.0.0.1:9999", "http://127.0.0.1:8642.evil.example",
    "", "http://[",
])
def test_another_origin_is_refused(client, origin):
    assert client.get("/api/networks", headers={"Origin": origin}).status_code == 403
    with pytest.raises(WebSocketDisconnect) as closed, client.websocket_connect(
        SOCKET, headers={"Origin": origin}
    ):
        pass
    assert closed.value.code == 1008


def test_what_comes_from_no_page_has_no_origin_and_comes_in(client):
    del client.headers["Origin"]
    assert client.get("/").status_code == 200, "a person types an address"
    with client.websocket_connect(SOCKET) as socket:
        assert Browser(socket).ask("position", game=chess_game())["type"] == "position"


def test_every_answer_forbids_inline_scripts_and_frames(client):
    for path in ("/", "/app.js", "/api/networks", "/nothing"):
        policy = client.get(path).headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert client.get(path).headers["X-Content-Type-Options"] == "nosniff"
    assert client.get("/", headers={"Host": "evil.example"}).headers["Content-Security-Policy"]


def test_the_files_need_nothing_from_elsewhere_and_nothing_inline():
    for file in STATIC.iterdir():
        text = file.read_text()
        addresses = set(re.findall(r"https?://[^\s\"')]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not addresses, file.name
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]*\ssrc=)", page)


def test_no_path_leads_out_of_the_static_files(client):
    for path in ("/%2e%2e/server.py", "/..%2fserver.py", "//etc/passwd"):
        assert client.get(path).status_code in (400, 404), path


def test_on_loopback_given_credentials_are_demanded_too(make_client):
    client = make_client(credentials=SECRET)
    for path in ("/", "/app.js", "/api/networks"):
        assert client.get(path).status_code == 401
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(SOCKET):
        pass
    assert client.get("/", headers=authorization(SECRET)).status_code == 200


def test_off_loopback_everything_needs_the_password(make_client):
    client = make_client(**OTHER)
    client.headers.update({"Host": "box.example:8642", "Origin": BOX})
    for path in ("/", "/app.js", "/api/networks", "/api/campaign"):
        for given in ({}, authorization("me:another-password"), {"Authorization": "Basic %"}):
            answer = client.get(path, headers=given)
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"].startswith("Basic")
    socket = SOCKET.replace("127.0.0.1", "box.example")
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(socket):
        pass
    assert client.get("/", headers=authorization(SECRET)).status_code == 200


def test_the_cookie_of_the_page_opens_the_socket(make_client):
    client = make_client(**OTHER)
    client.headers.update({"Host": "box.example:8642", "Origin": BOX})
    answer = client.get(f"{BOX}/", headers=authorization(SECRET))
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    socket, ticket = SOCKET.replace("127.0.0.1", "box.example"), cookie.partition(";")[0]
    with client.websocket_connect(socket, headers={"Cookie": ticket}) as opened:
        assert Browser(opened).ask("position", game=chess_game())["type"] == "position"
    client.cookies.clear()
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(
        socket, headers={"Cookie": ticket[:-1] + "_"}
    ):
        pass


def test_without_credentials_there_is_no_cookie(client):
    assert "Set-Cookie" not in client.get(f"{ADDRESS}/").headers


@pytest.mark.parametrize(("settings", "hint"), [
    ({"host": "box.example"}, "CHESS_SNN_CREDENTIALS"), ({"host": "box.example"}, "ssh -L 8642"),
    *(({"host": host, "credentials": SECRET}, "one IPv4 address") for host in EVERY_ADDRESS),
    ({"port": 0}, "--port"),
])
def test_settings_that_would_open_the_page_to_all_are_refused(settings, hint):
    with pytest.raises(ConfigError, match=hint):
        WebSettings(**settings)
