"""The deployment as its README describes it: a server, a pool, a worker, a run; nothing left."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(600)]
psutil = pytest.importorskip("psutil")
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

from mlflow.entities import Run  # noqa: E402
from mlflow.tracking import MlflowClient  # noqa: E402
from prefect.client.orchestration import get_client  # noqa: E402
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName  # noqa: E402
from prefect.client.schemas.objects import FlowRun  # noqa: E402
from prefect.client.schemas.schedules import IntervalSchedule  # noqa: E402
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, temporary_settings  # noqa: E402
from prefect.states import Cancelling  # noqa: E402

from chess_snn.campaign import CampaignFolder, campaign_lock, read_receipts  # noqa: E402
from chess_snn.data import verify_folder  # noqa: E402
from chess_snn.ports import free_port  # noqa: E402
from flows.server_processes import HOST  # noqa: E402
from tasks.tracking import EXPERIMENT, local_tracking_uri  # noqa: E402

REPOSITORY = Path(__file__).parents[2]
PREFECT = [sys.executable, "-m", "prefect"]
NUM_SHARDS = 2
SETTINGS = [
    "campaign.iterations=1", "self_play.games_per_iteration=8", "self_play.games_per_shard=4",
    "self_play.max_plies_first=6", "self_play.max_plies_last=6", "search.simulations_first=2",
    "search.simulations_last=2", "training.batch_size=16", "evaluation.num_openings=1",
    "evaluation.max_plies=6", 'evaluation.opponents=["random"]',
]
WAIT_S = 240.0
GONE_WITHIN_S = 15.0


class Installation:
    """A Prefect server, the pool `chess` with the deployment, and a worker; all in one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}/api"
        self.environment = os.environ | {
            "PREFECT_HOME": str(root / "prefect-home"),
            "PREFECT_API_URL": self.url,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            "CHESS_SNN_HOME": str(root / "home"),
            "DO_NOT_TRACK": "1",
        }
        self.processes: list[subprocess.Popen] = []

    def start(self) -> None:
        self._start(REPOSITORY, "server", "start", "--host", HOST, "--port", str(self.port))
        with self.client() as client:
            deadline = time.monotonic() + WAIT_S
            while client.api_healthcheck() is not None:
                assert time.monotonic() < deadline, "the server is not up"
                time.sleep(0.2)
        self.prefect("work-pool", "create", "chess", "--type", "process")
        self.prefect("--no-prompt", "deploy", "--prefect-file", "deployments/prefect.yaml", "--all")
        # Far from the repository: the flow comes from the installed package.
        self._start(self.root, "worker", "start", "--pool", "chess")

    def client(self):
        with temporary_settings({PREFECT_API_URL: self.url,
                                 PREFECT_HOME: self.root / "prefect-home"}):
            return get_client(sync_client=True)

    def prefect(self, *arguments: str) -> subprocess.CompletedProcess:
        done = subprocess.run(
            [*PREFECT, *arguments], cwd=REPOSITORY, env=self.environment, timeout=WAIT_S,
            capture_output=True, text=True, check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr + self.logs()
        return done

    def logs(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.root.glob("*.log")))

    def family(self) -> list:
        leaders = [psutil.Process(process.pid) for process in self.processes]
        return leaders + [child for leader in leaders for child in leader.children(recursive=True)]

    def stop(self) -> None:
        """Worker first, as a Ctrl-C in its terminal would."""
        for process in reversed(self.processes):
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(GONE_WITHIN_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise

    def _start(self, directory: Path, *arguments: str) -> None:
        with (self.root / f"{arguments[0]}.log").open("ab") as log:
            self.processes.append(subprocess.Popen(
                [*PREFECT, *arguments], cwd=directory, env=self.environment,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            ))


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    made = Installation(tmp_path_factory.mktemp("prefect"))
    try:
        made.start()
        yield made
        family = made.family()
    finally:
        made.stop()
    _, alive = psutil.wait_procs(family, timeout=GONE_WITHIN_S)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


def run_deployment(installation: Installation, **parameters) -> str:
    """Watch a run to its end; what it printed."""
    arguments = [f"--param={name}={json.dumps(value)}" for name, value in parameters.items()]
    command = [*PREFECT, "deployment", "run", "campaign/local", "--watch", *arguments]
    return subprocess.run(
        command, cwd=installation.root, env=installation.environment, timeout=WAIT_S,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    ).stdout


def test_a_run_with_a_directory_is_completed_with_its_iteration_and_tasks(installation):
    directory = installation.root / "campaign"
    run_deployment(installation, directory=str(directory), preset="smoke", settings=SETTINGS)

    folder = CampaignFolder.open(directory)
    assert len(read_receipts(folder)) == 1, installation.logs()
    for shard in range(NUM_SHARDS):
        verify_folder(folder.shard(0, shard))
    with installation.client() as client:
        # The first test of the module: there are no other runs, in whatever order they come.
        runs = {client.read_flow(run.flow_id).name: run for run in client.read_flow_runs()}
        tasks = Counter(
            (run.name.split("-")[0], run.state_name) for run in client.read_task_runs()
            if run.flow_run_id == runs["iteration"].id
        )
    assert {name: run.state_name for name, run in runs.items()} == {
        "campaign": "Completed", "iteration": "Completed"
    }
    assert runs["campaign"].deployment_id is not None
    assert runs["iteration"].tags == [f"campaign:{folder.campaign_id}"]
    assert tasks == {
        ("self_play", "Completed"): NUM_SHARDS,
        **{(name, "Completed"): 1 for name in ("train", "evaluate", "promote", "record")},
    }


def test_a_run_without_a_directory_makes_one_in_the_home(installation):
    output = run_deployment(installation, settings=SETTINGS)
    made = installation.root / "home" / "campaigns" / "smoke-001"
    assert len(read_receipts(CampaignFolder.open(made))) == 1, output + installation.logs()


def wait_for_state(installation: Installation, run_id: UUID, *names: str) -> FlowRun:
    """The flow run, once its state has one of ``names``."""
    deadline = time.monotonic() + WAIT_S
    while True:
        with installation.client() as client:
            run = client.read_flow_run(run_id)
        if run.state_name in names:
            return run
        assert time.monotonic() < deadline, f"{run.state_name}\n{installation.logs()}"
        time.sleep(0.2)


def start_run(installation: Installation, **parameters) -> UUID:
    with installation.client() as client:
        deployment = client.read_deployment_by_name("campaign/local")
        return client.create_flow_run_from_deployment(deployment.id, parameters=parameters).id


def committed_games(folder: Path) -> dict[Path, int]:
    """When each shard was committed."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("games/*/*/MANIFEST.json")}


def mlflow_run_of(installation: Installation, name: str) -> Run:
    client = MlflowClient(local_tracking_uri(installation.root / "home" / "services"))
    experiment = client.get_experiment_by_name(EXPERIMENT)
    runs = client.search_runs([experiment.experiment_id])
    (found,) = [run for run in runs if run.info.run_name == name]
    return found


def test_a_cancelled_run_stops_whole_and_the_same_form_resumes_it(installation):
    others = ("campaign.", "search.", "self_play.games_per_iteration")
    form = {
        "name": "by-form", "network": "tiny", "workers": 2, "iterations": 2, "simulations": 2,
        "games_per_iteration": 64,
        "settings": [text for text in SETTINGS if not text.startswith(others)],
    }
    folder = installation.root / "home" / "campaigns" / "by-form"
    services = set(installation.family())
    run_id = start_run(installation, **form)
    deadline = time.monotonic() + WAIT_S
    while not (folder / "games" / "iter-000000").exists():
        assert time.monotonic() < deadline, installation.logs()
        time.sleep(0.1)
    with installation.client() as client:
        client.set_flow_run_state(run_id, Cancelling())
    cancelled = wait_for_state(installation, run_id, "Cancelled", "Crashed", "Failed", "Completed")
    assert (cancelled.name, cancelled.state_name) == ("by-form", "Cancelled")
    campaign = CampaignFolder.open(folder)
    assert len(read_receipts(campaign)) < 2
    _, alive = psutil.wait_procs(set(installation.family()) - services, timeout=GONE_WITHIN_S)
    assert not alive
    with campaign_lock(campaign):  # an error while another process has it
        kept = committed_games(folder)
    mlflow_run = mlflow_run_of(installation, "by-form")
    assert mlflow_run.info.status == "KILLED"
    assert str(run_id) in mlflow_run.data.tags["mlflow.note.content"]

    resumed = start_run(installation, **form)
    assert wait_for_state(installation, resumed, "Completed", "Failed", "Crashed").state_name \
        == "Completed", installation.logs()
    assert len(read_receipts(campaign)) == 2
    assert kept.items() <= committed_games(folder).items()
    assert mlflow_run_of(installation, "by-form").info.status == "FINISHED"


def test_a_schedule_starts_runs_that_resume_a_campaign_or_do_nothing(installation):
    parameters = {"name": "scheduled", "settings": SETTINGS}
    with installation.client() as client:
        deployment = client.read_deployment_by_name("campaign/local")
        (schedule,) = client.create_deployment_schedules(
            deployment.id, [(IntervalSchedule(interval=timedelta(seconds=15)), True)],
            parameters=parameters, slug="scheduled",
        )
        completed: list[FlowRun] = []
        deadline = time.monotonic() + 2 * WAIT_S
        while len(completed) < 2:
            assert time.monotonic() < deadline, installation.logs()
            time.sleep(1)
            named = FlowRunFilter(name=FlowRunFilterName(any_=["scheduled"]))
            runs = client.read_flow_runs(flow_run_filter=named)
            assert not [run for run in runs if run.state_name in {"Failed", "Crashed"}], \
                installation.logs()
            completed = [run for run in runs if run.state_name == "Completed"]
        client.delete_deployment_schedule(deployment.id, schedule.id)
    assert all(run.auto_scheduled for run in completed)
    folder = CampaignFolder.open(installation.root / "home" / "campaigns" / "scheduled")
    assert len(read_receipts(folder)) == 1


def test_a_run_in_a_relative_directory_fails_and_says_why(installation):
    output = run_deployment(installation, directory="campaigns/mine")
    assert "directory must be an absolute path" in output + installation.logs()
    with installation.client() as client:
        states = Counter(run.state_name for run in client.read_flow_runs())
    assert states["Failed"] == 1
