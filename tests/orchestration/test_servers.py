"""Real Prefect and MLflow servers: what they show, what they leave, what a kill -9 leaves."""

import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import prefect
import pytest
from mlflow_stores import prepare_store
from prefect import flow, tags, task
from prefect.client.orchestration import get_client
from prefect.flow_engine import run_flow
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    temporary_settings,
)
from prefect.states import Pending, Running, Scheduled
from waiting import assert_gone, wait_for

from chess_snn.errors import UsageError
from chess_snn.flows import supervisor
from chess_snn.flows.context import campaign_tag, close_stale_flow_runs
from chess_snn.flows.prefect_access import AUTH_VARIABLE, kept_credentials
from chess_snn.flows.prefect_errors import ServerGoneError
from chess_snn.flows.server_processes import Server
from chess_snn.flows.servers import mlflow_server, prefect_server, prefect_spec
from chess_snn.ports import free_port
from chess_snn.tasks.tracking import local_tracking_uri

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")
pytest.importorskip("mlflow")


psutil = pytest.importorskip("psutil")


NUM_SHARDS = 8

KILLED_CAMPAIGN = """
import sys, time
from pathlib import Path
from prefect import flow, tags, task
from chess_snn.flows.servers import prefect_server
from chess_snn.flows.context import campaign_tag

@task
def play(shard):
    Path(sys.argv[1], f"{sys.argv[2]}-{shard}").touch()
    time.sleep(300)

@flow
def iteration():
    play.map([0, 1]).wait()

@flow
def campaign():
    iteration()

with prefect_server(Path(sys.argv[1])), tags(campaign_tag(sys.argv[2])):
    campaign()
"""


@task
def play(shard):
    return shard


@flow
def iteration(number):
    return sum(future.result() for future in play.map(range(NUM_SHARDS)))


@flow
def campaign():
    return [iteration(number) for number in range(2)]


@flow
def resumed(name):
    return close_stale_flow_runs(name)


@pytest.fixture(autouse=True)
def no_given_server(monkeypatch):
    for name in ("PREFECT_API_URL", AUTH_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """One folder for all servers of this module: creating the database takes most of the time."""
    return tmp_path_factory.mktemp("prefect")


def run_states(name: str) -> tuple[Counter, Counter]:
    """State names of a campaign's flow runs and of their task runs."""
    with get_client(sync_client=True) as client:
        flow_runs = [r for r in client.read_flow_runs() if campaign_tag(name) in r.tags]
        ids = {run.id for run in flow_runs}
        task_runs = [run for run in client.read_task_runs() if run.flow_run_id in ids]
    return Counter(r.state_name for r in flow_runs), Counter(r.state_name for r in task_runs)


@pytest.mark.slow
def test_runs_and_mapped_tasks_are_completed_when_read_back(directory):
    with prefect_server(directory) as api_url:
        server = psutil.Process(json.loads((directory / "prefect-server.json").read_text())["pid"])
        assert os.environ["PREFECT_API_URL"] == PREFECT_API_URL.value() == api_url
        with prefect_server(directory) as inner_url:
            assert inner_url == api_url, "a server inside a server"
        with tags(campaign_tag("whole")):
            assert campaign() == [sum(range(NUM_SHARDS))] * 2
    assert not server.is_running()
    assert not {"PREFECT_API_URL", "PREFECT_API_AUTH_STRING"} & set(os.environ)

    # A new server on the same database shows only what was written before the first one stopped.
    with prefect_server(directory):
        flow_states, task_states = run_states("whole")
    assert flow_states == {"Completed": 1 + 2}
    assert task_states == {"Completed": 2 + 2 * NUM_SHARDS}, "2 stand for the sub-flows"


@pytest.mark.fault(3, 5)
@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
@pytest.mark.slow
@pytest.mark.parametrize("is_retried", [False, True])
def test_a_killed_campaign_leaves_no_process_and_its_runs_can_be_closed(directory, is_retried):
    script = directory / "killed_campaign.py"
    script.write_text(KILLED_CAMPAIGN)
    name = f"killed-{is_retried}"
    parent = subprocess.Popen(
        [sys.executable, script, directory, name], stderr=subprocess.DEVNULL, start_new_session=True
    )
    playing = [directory / f"{name}-{shard}" for shard in range(2)]
    wait_for(lambda: all(path.exists() for path in playing))
    family = [psutil.Process(parent.pid), *psutil.Process(parent.pid).children(recursive=True)]
    assert len(family) >= 2, "the campaign and its Prefect server"
    with prefect_server(directory):  # the campaign's own, which lives: tasks' states come late
        wait_for(lambda: run_states(name)[1]["Running"] >= 2)
    parent.kill()
    parent.wait()
    assert_gone(family)

    with prefect_server(directory), get_client(sync_client=True) as client:
        assert run_states(name)[0] == {"Running": 2}
        assert close_stale_flow_runs("other") == 0
        if is_retried:
            (own,) = [run for run in client.read_flow_runs()
                      if campaign_tag(name) in run.tags and run.parent_task_run_id is None]
            client.set_flow_run_state(own.id, Scheduled(), force=True)
            assert run_flow(resumed, client.read_flow_run(own.id), {"name": name}) == 1
        else:
            with tags(campaign_tag(name)):
                assert resumed(name) == 2, "and not the run that asks"
        flow_states, task_states = run_states(name)
        assert flow_states == {"Crashed": 2 - is_retried, "Completed": 1}
        assert task_states == {"Crashed": 1 + 2}, "1 stands for the sub-flow"
        assert close_stale_flow_runs(name) == 0


@pytest.mark.slow
def test_runs_that_wait_for_a_process_or_for_their_turn_are_not_closed(directory):
    """A retried one has the tag of its campaign from its first try."""
    mine = [campaign_tag("queued")]
    with prefect_server(directory), get_client(sync_client=True) as client:
        deployed = client.create_deployment(client.create_flow(resumed), "local")
        client.create_flow_run_from_deployment(deployed, state=Pending(), tags=mine)
        client.create_flow_run(resumed, state=Running(name="Waiting"), tags=mine)
        client.create_flow_run(resumed, state=Running(), tags=mine)
        assert close_stale_flow_runs("queued") == 1
        assert run_states("queued")[0] == {"Pending": 1, "Waiting": 1, "Crashed": 1}


@pytest.mark.slow
def test_a_given_prefect_server_is_used_and_nothing_started(directory, tmp_path):
    with prefect_server(directory) as given_url, prefect_server(tmp_path) as api_url:
        assert api_url == given_url
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/api", "localhost:9/api"])
def test_a_given_prefect_server_that_is_away_is_one_line(tmp_path, monkeypatch, url):
    monkeypatch.setenv("PREFECT_API_URL", url)
    with (
        pytest.raises(UsageError, match=url),
        prefect_server(tmp_path),
    ):
        pytest.fail("nobody listens there")
    assert not list(tmp_path.iterdir())


@contextmanager
def given_server(directory, monkeypatch):
    """A Prefect server, that of the environment, in which its credentials are missing."""
    spec = prefect_spec(directory, free_port(), kept_credentials(directory))
    server = Server(spec)
    try:
        server.wait_until_healthy(120.0)
        monkeypatch.setenv("PREFECT_API_URL", spec.url)
        yield spec.url, server
    finally:
        server.stop()


@pytest.mark.slow
def test_a_given_prefect_server_wants_its_credentials(directory, tmp_path, monkeypatch):
    with given_server(directory, monkeypatch) as (url, _):
        wanted = f"{url} .*401.* PREFECT_API_AUTH_STRING"
        for given in (None, "", "chess-snn:wrong", "chess-snn:"):
            with (
                temporary_settings({PREFECT_API_AUTH_STRING: given}),
                pytest.raises(UsageError, match=wanted) as refused, prefect_server(tmp_path),
            ):
                pytest.fail("it was let in")
            assert "\n" not in str(refused.value)
        right = {PREFECT_API_AUTH_STRING: kept_credentials(directory).text}
        with temporary_settings(right), prefect_server(tmp_path):
            pass
        assert not list(tmp_path.iterdir())
        monkeypatch.setenv("PREFECT_API_URL", url.removesuffix("/api"))
        with pytest.raises(UsageError, match="/api"), prefect_server(tmp_path):
            pytest.fail("a page is no API")


@pytest.mark.slow
def test_deployments_that_take_too_long_are_refused(directory, monkeypatch):
    monkeypatch.setattr(supervisor, "DEPLOY_TIMEOUT_S", 0.1)
    with prefect_server(directory) as url:
        told = url
        with pytest.raises(UsageError, match=told):
            supervisor.deploy({
                "PREFECT_API_URL": url, AUTH_VARIABLE: kept_credentials(directory).text,
            })


@pytest.mark.slow
def test_a_flow_that_begins_when_its_server_has_gone_is_one_line(directory, tmp_path, monkeypatch):
    def run_without(server):
        with prefect_server(tmp_path):
            server.stop()  # and its socket: where the owner keeps that, clients wait for a restart
            resumed("gone")

    with (
        given_server(directory, monkeypatch) as (url, server),
        temporary_settings({
            PREFECT_API_URL: url, PREFECT_API_AUTH_STRING: kept_credentials(directory).text,
        }),
        pytest.raises(ServerGoneError, match=url),
    ):
        run_without(server)


class Failing(BaseHTTPRequestHandler):
    """Answers as a server whose database's disk is full: it knows its version without one."""

    def do_GET(self):
        if self.path != "/api/admin/version":
            self.send_error(500)
            return
        body = json.dumps(prefect.__version__).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.send_error(500)

    def log_message(self, *_):
        """Say nothing."""


@pytest.mark.fault(12)
def test_a_server_that_fails_is_one_line_bug(tmp_path, monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), Failing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/api"
        monkeypatch.setenv("PREFECT_API_URL", url)
        with (
            pytest.raises(ServerGoneError, match=f"{url} .*500"),
            prefect_server(tmp_path), temporary_settings({PREFECT_API_URL: url}),
            get_client(sync_client=True) as client,
        ):
            client.read_flow_runs()
        server.shutdown()


@pytest.mark.slow
def test_mlflow_shows_the_campaign_and_is_gone_after_the_block(tmp_path):
    store = prepare_store(local_tracking_uri(tmp_path))
    with mlflow_server(tmp_path, store=store) as url:
        leader = psutil.Process(json.loads((tmp_path / "mlflow-server.json").read_text())["pid"])
        family = [leader, *leader.children(recursive=True)]
        request = urllib.request.Request(
            f"{url}/api/2.0/mlflow/experiments/search", data=b'{"max_results": 10}',
            headers={"Content-Type": "application/json"},
        )
        answer = json.load(urllib.request.urlopen(request))
        names = {experiment["name"] for experiment in answer["experiments"]}
        page = urllib.request.urlopen(url).read()
    assert "chess-snn" in names
    assert b"MLflow" in page
    assert_gone(family)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
def test_a_killed_viewer_leaves_no_mlflow_process(tmp_path):
    code = (
        "import sys, time; from pathlib import Path\n"
        "from chess_snn.flows.servers import mlflow_server\n"
        "with mlflow_server(Path(sys.argv[1])): print('up', flush=True); time.sleep(300)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE)
    assert parent.stdout.readline() == b"up\n"
    family = psutil.Process(parent.pid).children(recursive=True)
    assert family
    parent.kill()
    parent.wait()
    assert_gone(family)


def test_a_given_mlflow_server_is_used_and_nothing_started(tmp_path):
    with mlflow_server(tmp_path, store="http://127.0.0.1:9") as url:
        assert url == "http://127.0.0.1:9"
    assert not list(tmp_path.iterdir())
