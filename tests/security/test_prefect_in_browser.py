"""Prefect's page in Chromium: what pages of other sites can do, and what its owner can."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(1200)]
pytest.importorskip("prefect")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="pip install playwright: the page is NOT tested in a browser"
)

from chromium import find_chromium  # noqa: E402
from prefect.client.schemas.actions import WorkPoolUpdate  # noqa: E402
from services_home import Home, services_up, wait_for  # noqa: E402

from chess_snn.flows.prefect_access import SIGN_IN  # noqa: E402
from chess_snn.flows.supervisor import POOL  # noqa: E402

EVIL = "evil.example"
TIMEOUT_MS = 120_000
ATTACK = """async ([own, rebound, api]) => {
  const body = '{"name": "evil"}', answers = [];
  const ask = async (url, options) => {
    try { answers.push((await fetch(url, options)).status); } catch { answers.push("blocked"); }
  };
  for (const base of [own, rebound]) {
    const url = `${base}/api/flows/`;
    await ask(url, {method: "POST", body, mode: "no-cors"});
    await ask(url, {method: "POST", body: new Blob([body]), mode: "no-cors"});
    await ask(url, {method: "POST", body, headers: {"Content-Type": "application/json"}});
    await ask(`${base}/api/flows/filter`, {method: "POST", body: "{}", credentials: "include"});
    navigator.sendBeacon(url, new Blob([body]));
    const form = document.createElement("form"), frame = document.createElement("iframe");
    Object.assign(form, {method: "POST", action: url, enctype: "text/plain", target: "hidden"});
    frame.name = "hidden";
    form.innerHTML = `<input name='{"name": "evil", "labels": {"a": "' value='"}}'>`;
    document.body.append(frame, form);
    await new Promise(done => { frame.onload = done; form.submit(); });
    frame.remove();
    answers.push(await new Promise(done => {
      const socket = new WebSocket(`${base.replace("http", "ws")}/api/events/in`, "prefect");
      socket.onopen = () => done("opened");
      socket.onerror = () => done("blocked");
    }));
  }
  return answers;
}"""
"""Writes in every way that a browser has for a page of another site, then opens a socket."""


class EvilPage(BaseHTTPRequestHandler):
    """A page without content, on which a test runs its script."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>evil</title><body></body>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Iterator[Home]:
    with services_up(tmp_path_factory.mktemp("up") / "home") as made:
        with made.client() as client:  # runs that are asked for need not begin
            client.update_work_pool(POOL, WorkPoolUpdate(is_paused=True))
        yield made


@pytest.fixture(scope="module")
def link(home) -> str:
    """The link that `up` prints for the browser."""
    return next(word for word in home.said.split() if SIGN_IN in word)


@pytest.fixture
def context() -> Iterator["playwright.BrowserContext"]:
    """Pages of a Chromium for which the name of the other site leads to this machine."""
    with playwright.sync_playwright() as running, contextlib.ExitStack() as stack:
        try:
            browser = running.chromium.launch(
                executable_path=find_chromium(),
                args=[f"--host-resolver-rules=MAP {EVIL} 127.0.0.1"],
            )
        except playwright.Error as error:
            pytest.skip(f"no Chromium: the page is NOT tested in a browser ({str(error)[:80]})")
        stack.callback(browser.close)
        made = browser.new_context(viewport={"width": 1440, "height": 1000})
        made.set_default_timeout(TIMEOUT_MS)
        yield made


@pytest.fixture
def evil_origin() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), EvilPage) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{EVIL}:{server.server_port}"
        server.shutdown()


def test_a_page_of_another_site_has_no_effect_though_the_browser_is_signed_in(
    home, link, context, evil_origin
):
    own = context.new_page()
    own.goto(link)
    own.wait_for_url("**/dashboard*")
    page = context.new_page()
    page.goto(evil_origin)
    port = urlsplit(home.api_url).port
    before = flow_names(home)
    answers = page.evaluate(ATTACK, [
        f"http://127.0.0.1:{port}", f"http://{EVIL}:{port}", home.api_url,
    ])
    assert set(answers) <= {0, "blocked"}, "0 stands for an answer that the page may not see"
    assert len(answers) == 10
    assert flow_names(home) == before


def test_a_rebound_name_shows_nothing_of_the_server(home, context):
    page = context.new_page()
    for path in ("/", "/api/health", SIGN_IN):
        answer = page.goto(f"http://{EVIL}:{home.ports[0]}{path}")
        assert answer.status == 400, path
        assert "Prefect" not in page.content()


def test_without_the_credentials_the_page_asks_for_them(home, context):
    page = context.new_page()
    page.goto(home.api_url.removesuffix("/api"))
    page.wait_for_url("**/login*")
    page.fill("input", "chess-snn:wrong")
    page.keyboard.press("Enter")
    page.get_by_text("Invalid credentials").first.wait_for()
    page.fill("input", home.credentials)
    page.keyboard.press("Enter")
    page.wait_for_url("**/dashboard*")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_the_link_opens_a_page_that_starts_runs_and_shows_them(home, link, context, name):
    page, refused = context.new_page(), []
    page.on("response", lambda answer: refused.append(answer.url) if answer.status in (
        400, 401, 403
    ) else None)
    open_checked(page, link.replace("127.0.0.1", name))
    page.wait_for_url("**/dashboard*")
    assert home.credentials.partition(":")[2] not in page.url
    base = page.url.partition("/dashboard")[0]
    with home.client() as client:
        deployment = client.read_deployment_by_name("campaign/local")
    open_checked(page, f"{base}/deployments/deployment/{deployment.id}/run")
    page.get_by_text("preset").first.wait_for()
    page.wait_for_load_state("networkidle")
    run = wait_for(lambda: submitted_run(page), "no run was made")
    open_checked(page, f"{base}/runs/flow-run/{run['id']}")
    page.get_by_text(run["name"]).first.wait_for()
    assert refused == []


def flow_names(home: Home) -> list[str]:
    with home.client() as client:
        return sorted(flow.name for flow in client.read_flows())


def open_checked(page: "playwright.Page", url: str) -> None:
    """Open a page of Prefect's; it forgets the password if its check of that is cut off."""
    with page.expect_response("**/api/admin/version"):
        page.goto(url)


def submitted_run(page: "playwright.Page") -> dict | None:
    """Press the form's button; the run that the server made, None while its SQLite is busy."""
    with page.expect_response("**/create_flow_run") as answer:
        page.get_by_role("button", name="Submit").click()
    assert answer.value.status in (201, 503)
    return answer.value.json() if answer.value.status == 201 else None
