"""`chess-snn up` from a clean home, runs of its deployment, and nothing left afterwards.

Every process that `up` starts inherits CHESS_SNN_HOME, by which the tests find them all.
"""

import importlib.util
import json
import re
import signal
import sys
import urllib.error
import urllib.request
from collections import Counter

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(1800)]
psutil = pytest.importorskip("psutil")
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

from services_home import GONE_WITHIN_S, WAIT_S, Home, services_up, wait_for  # noqa: E402
from small_campaigns import SMALL  # noqa: E402

from chess_snn.campaign import CampaignFolder, read_receipts  # noqa: E402
from chess_snn.flows.prefect_access import CREDENTIALS_FILE  # noqa: E402
from chess_snn.flows.server_processes import HOST  # noqa: E402
from chess_snn.ports import free_port  # noqa: E402


@pytest.fixture
def home(tmp_path):
    made = Home(tmp_path / "home")
    yield made
    for process in made.processes():
        process.kill()


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with services_up(tmp_path_factory.mktemp("up") / "home") as made:
        yield made


def test_it_prints_where_everything_is_and_the_next_command(running):
    assert f"Prefect  http://{HOST}:{running.ports[0]}" in running.said
    assert f"MLflow   {running.mlflow_url}" in running.said
    runs = rf"  runs  {running.mlflow_url}/#/experiments/\d+/runs\?workflowType=machine_learning"
    assert re.search(runs, running.said)
    assert f"  models  {running.mlflow_url}/#/models/chess-snn" in running.said
    assert f"export PREFECT_API_URL={running.api_url}" in running.said
    kept = running.path / "services" / CREDENTIALS_FILE
    assert f"export PREFECT_API_AUTH_STRING=$(cat {kept})" in running.said
    assert f"http://{HOST}:{running.ports[0]}/sign-in#{running.credentials}" in running.said
    assert running.credentials not in running.logs(), "only the terminal has it"
    assert "campaign/local" in running.said
    page = urllib.request.urlopen(running.api_url.removesuffix("/api")).read()
    assert b"Prefect" in page


def test_every_socket_that_listens_does_so_on_loopback(running):
    listening = {
        connection.laddr.ip for process in running.processes()
        for connection in process.net_connections("tcp") if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {HOST}


def test_a_second_up_finds_the_first(running):
    before = running.supervisor()
    again = running.run("up", "--prefect-port", free_port())
    assert again.returncode == 0
    assert str(before.pid) in again.stdout
    assert running.api_url in again.stdout
    assert running.supervisor() == before


def test_a_port_that_another_up_has_is_named(running, home):
    home.ports = running.ports
    refused = home.up()
    assert refused.returncode == 2
    assert "--prefect-port" in refused.stdout
    assert not home.processes()


@pytest.mark.parametrize(("parameters", "reason"), [
    ({"preset": "huge"}, "huge"), ({"settings": "campaign.iterations=1"}, "settings"),
])
def test_parameters_that_the_form_would_refuse_start_nothing(running, parameters, reason):
    with running.client() as client:
        before = len(client.read_flow_runs())
        assert reason in running.deployment("campaign/local", **parameters)
        assert len(client.read_flow_runs()) == before


def test_a_second_run_of_one_campaign_waits_for_the_first(running, tmp_path):
    parameters = [
        f"--param=directory={json.dumps(str(tmp_path / 'shared'))}", "--param=preset=smoke",
        f"--param=settings={json.dumps(SMALL)}",
    ]
    running.export()
    first = running.start("deployment", "run", "campaign/local", "--watch", *parameters,
                          module="prefect")
    wait_for((tmp_path / "shared/campaign.lock").exists, "the first run has no campaign")
    second = running.deployment("campaign/local", directory=str(tmp_path / "shared"))
    said, _ = first.communicate(timeout=WAIT_S)
    with running.client() as client:
        runs = [run for run in client.read_flow_runs()
                if run.name == "shared"]
    assert Counter(run.state_name for run in runs) == {"Completed": 2}, said + second
    assert max(run.start_time for run in runs) < min(run.end_time for run in runs), "side by side"
    assert len(read_receipts(CampaignFolder.open(tmp_path / "shared"))) == 2


def test_a_service_that_dies_is_started_again(running):
    record_file = running.path / "services" / "mlflow-server.json"
    before = json.loads(record_file.read_text())["pid"]
    psutil.Process(before).kill()
    wait_for(
        lambda: (text := record_file.read_text()) and json.loads(text)["pid"] != before,
        "it was not started again",
    )
    wait_for(lambda: _answers(f"{running.mlflow_url}/health"), "it does not answer")


def _answers(url: str) -> bool:
    try:
        return urllib.request.urlopen(url, timeout=2).status == 200
    except OSError:
        return False


def ask_for_long_campaign(home: Home) -> None:
    home.export()
    asked = home.run(
        "deployment", "run", "campaign/local", f"--param=directory={home.path.parent / 'long'}",
        "--param=preset=smoke", module="prefect",
    )
    assert asked.returncode == 0, asked.stdout


def start_long_campaign(home: Home) -> None:
    """A run that plays when this returns."""
    ask_for_long_campaign(home)
    directory = home.path.parent / "long"
    wait_for((directory / "plans/iter-000000.json").exists, home.logs())
    wait_for(lambda: len(home.processes()) >= 8, "supervisor, servers, worker, run, Dask workers")
    with home.client() as client:
        wait_for(
            lambda: [run.state_name for run in client.read_flow_runs()] == ["Running"] * 2,
            "the campaign and its iteration",
        )


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
def test_a_killed_supervisor_leaves_nothing_and_up_works_again(home):
    said = home.up()
    assert said.returncode == 0, said.stdout
    start_long_campaign(home)
    home.supervisor().kill()
    assert home.is_left_alone(), [process.cmdline() for process in home.processes()]
    again = home.up()
    assert again.returncode == 0, again.stdout + home.logs()
    check_the_killed_run_is_closed_by_the_next(home)
    assert home.run("down").returncode == 0
    assert home.is_left_alone()


def check_the_killed_run_is_closed_by_the_next(home: Home) -> None:
    with home.client() as client:
        killed = client.read_flow_runs()
        assert {run.state_name for run in killed} == {"Running"}, "nobody was left to say otherwise"
        ask_for_long_campaign(home)
        wait_for(
            lambda: all(client.read_flow_run(run.id).state_name == "Crashed" for run in killed),
            home.logs(),
        )


def test_down_in_the_middle_of_a_campaign_leaves_nothing_and_it_can_be_gone_on_with(home):
    assert home.up().returncode == 0
    start_long_campaign(home)
    assert home.run("down").returncode == 0
    assert not home.processes(), [process.cmdline() for process in home.processes()]
    assert "Crashed" in home.logs(), "the run could say what became of it"
    status = home.run("campaign", "status", home.path.parent / "long")
    assert "chess-snn campaign resume" in status.stdout


@pytest.mark.parametrize("option", [(), ("--foreground",)], ids=["background", "foreground"])
def test_ctrl_c_while_it_starts_leaves_nothing(home, option):
    process = home.start("up", *home.port_options, *option)
    wait_for((home.path / "services/prefect-server.json").exists, "nothing was started")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=GONE_WITHIN_S)
    assert process.returncode == 130
    assert home.is_left_alone(), [found.cmdline() for found in home.processes()]


@pytest.mark.skipif(
    importlib.util.find_spec("flask_wtf") is None,
    reason="pip install 'chess-snn[auth]': that servers ask for the password is NOT tested",
)
def test_with_credentials_both_servers_ask_for_them_and_no_log_has_them(tmp_path):
    secret = "canary-password"
    home = Home(tmp_path / "home", CHESS_SNN_CREDENTIALS=f"me:{secret}")
    try:
        said = home.up()
        assert said.returncode == 0, said.stdout + home.logs()
        for url in (f"{home.api_url}/flows/count", f"{home.mlflow_url}/"):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(url, data=b"{}" if "count" in url else None)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            home.post("experiments/search", {"max_results": 1}, user="me:wrong-password")
        assert home.post("experiments/search", {"max_results": 1}, user=f"me:{secret}")
        directory = tmp_path / "campaign"
        home.deployment("campaign/local", directory=str(directory), settings=list(SMALL))
        assert len(read_receipts(CampaignFolder.open(directory))) == 2, home.logs()
        assert secret not in said.stdout + home.logs()
        files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
        assert {".db", ".log", ".safetensors"} <= {path.suffix for path in files}
        assert [path for path in files if secret.encode() in path.read_bytes()] == []
        for process in home.processes():
            assert secret not in " ".join(process.cmdline())
        assert home.run("down").returncode == 0
        home.environment["CHESS_SNN_CREDENTIALS"] = "me:another-password"
        refused = home.up()
        assert refused.returncode == 2
        assert "mlflow-users.db" in refused.stdout
        assert home.is_left_alone()
    finally:
        for process in home.processes():
            process.kill()
