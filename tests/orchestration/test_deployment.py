"""Runs of the deployment: in the home, cancelled and resumed by a form, started by a schedule."""

import shutil
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(1800)]
psutil = pytest.importorskip("psutil")
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

from mlflow.entities import Run  # noqa: E402
from mlflow.tracking import MlflowClient  # noqa: E402
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName  # noqa: E402
from prefect.client.schemas.schedules import IntervalSchedule  # noqa: E402
from prefect.states import Cancelling, Scheduled  # noqa: E402
from services_home import GONE_WITHIN_S, WAIT_S, Home, services_up, wait_for  # noqa: E402
from small_campaigns import SMALL  # noqa: E402

from chess_snn.campaign import CampaignFolder, campaign_lock, read_receipts  # noqa: E402
from chess_snn.campaign.configuration.loading import (  # noqa: E402
    _name_and_value,
    format_toml,
)
from chess_snn.experiment.results import read_results  # noqa: E402
from chess_snn.tasks.tracking import EXPERIMENT  # noqa: E402

SETTINGS = [*SMALL, "campaign.iterations=1"]
ENDS = {"Cancelled", "Crashed", "Failed", "Completed"}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with services_up(tmp_path_factory.mktemp("up") / "home") as made:
        yield made


def end_of(home: Home, run_id: UUID) -> str:
    """The name of the state in which a flow run has ended."""
    with home.client() as client:
        return wait_for(
            lambda: {client.read_flow_run(run_id).state_name} & ENDS, home.logs()
        ).pop()


def start_run(home: Home, **parameters) -> UUID:
    with home.client() as client:
        deployment = client.read_deployment_by_name("campaign/local")
        return client.create_flow_run_from_deployment(deployment.id, parameters=parameters).id


def committed_games(folder: Path) -> dict[Path, int]:
    """When each shard was committed."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("games/*/shard-*")}


def mlflow_run_of(home: Home, name: str) -> Run:
    client = MlflowClient(home.mlflow_url)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    runs = client.search_runs([experiment.experiment_id])
    (found,) = [run for run in runs if run.info.run_name == name]
    return found


def test_a_cancelled_run_stops_whole_and_the_same_form_resumes_it(running):
    others = ("campaign.", "search.", "self_play.games_per_iteration", "execution.")
    form = {
        "name": "by-form", "network": "tiny", "workers": 2, "iterations": 2, "simulations": 2,
        "games_per_iteration": 64,
        "settings": [text for text in SETTINGS if not text.startswith(others)],
    }
    folder = running.path / "campaigns" / "by-form"
    services = set(running.processes())
    run_id = start_run(running, **form)
    wait_for(lambda: committed_games(folder), running.logs())
    with running.client() as client:
        client.set_flow_run_state(run_id, Cancelling())
    assert end_of(running, run_id) == "Cancelled"
    campaign = CampaignFolder.open(folder)
    assert len(read_receipts(campaign)) < 2
    _, alive = psutil.wait_procs(set(running.processes()) - services, timeout=GONE_WITHIN_S)
    assert not alive
    with campaign_lock(campaign):  # an error while another process has it
        kept = committed_games(folder)
    assert kept
    mlflow_run = mlflow_run_of(running, "by-form")
    assert mlflow_run.info.status == "KILLED"
    assert str(run_id) in mlflow_run.data.tags["mlflow.note.content"]

    assert end_of(running, start_run(running, **form)) == "Completed", running.logs()
    assert len(read_receipts(campaign)) == 2
    assert kept.items() <= committed_games(folder).items()
    assert mlflow_run_of(running, "by-form").info.status == "FINISHED"


def retry(home: Home, run_id: UUID) -> str:
    """Retry a flow run as Prefect's page does; the state in which it ends."""
    with home.client() as client:
        client.set_flow_run_state(run_id, Scheduled(), force=True)
        wait_for(lambda: client.read_flow_run(run_id).state_name == "Running", home.logs())
    return end_of(home, run_id)


def test_a_retry_continues_the_campaign_of_its_run_and_makes_no_other_bug(running):
    """A run without a name made another campaign, and left the first one as it was."""
    campaigns = running.path / "campaigns"
    before = set(campaigns.iterdir())
    run_id = start_run(running, settings=[*SMALL, "campaign.iterations=2"])
    wait_for(lambda: [new for new in campaigns.iterdir() if new not in before
                      and committed_games(new)], running.logs())
    (path,) = set(campaigns.iterdir()) - before
    assert path.name == "smoke-001"
    with running.client() as client:
        client.set_flow_run_state(run_id, Cancelling())
    assert end_of(running, run_id) == "Cancelled"
    kept = committed_games(path)
    assert retry(running, run_id) == "Completed", running.logs()
    assert set(campaigns.iterdir()) - before == {path}
    assert len(read_receipts(CampaignFolder.open(path))) == 2
    assert kept.items() <= committed_games(path).items()

    shutil.rmtree(path)
    assert retry(running, run_id) == "Failed", running.logs()
    with running.client() as client:
        run = client.read_flow_run(run_id)
    assert run.name == path.name
    assert str(path) in run.state.message
    assert set(campaigns.iterdir()) == before, "nothing is made"


def test_a_schedule_starts_runs_that_resume_a_campaign_or_do_nothing(running):
    parameters = {"name": "scheduled", "settings": SETTINGS}
    named = FlowRunFilter(name=FlowRunFilterName(any_=["scheduled"]))

    def completed() -> list:
        runs = client.read_flow_runs(flow_run_filter=named)
        assert not [run for run in runs if run.state_name in {"Failed", "Crashed"}], running.logs()
        found = [run for run in runs if run.state_name == "Completed"]
        return found if len(found) >= 2 else []

    with running.client() as client:
        deployment = client.read_deployment_by_name("campaign/local")
        (schedule,) = client.create_deployment_schedules(
            deployment.id, [(IntervalSchedule(interval=timedelta(seconds=15)), True)],
            parameters=parameters, slug="scheduled",
        )
        runs = wait_for(completed, running.logs(), 2 * WAIT_S)
        client.delete_deployment_schedule(deployment.id, schedule.id)
    assert all(run.auto_scheduled for run in runs)
    folder = CampaignFolder.open(running.path / "campaigns" / "scheduled")
    assert len(read_receipts(folder)) == 1


def test_an_experiment_has_a_subflow_for_each_variant_and_seed(running, tmp_path):
    file, settings = tmp_path / "rate.toml", dict(map(_name_and_value, SETTINGS))
    games = settings["self_play.games_per_iteration"]
    file.write_text(format_toml({
        "name": "rate", "seeds": [1], "budget": {"games": games}, "settings": settings,
        "start": {"preset": "smoke"},
        "variants": {"baseline": {}, "fast": {"training.learning_rate": 0.02}},
        "judge": {"simulations": [2], "games": 2},
    }))
    output = running.deployment("experiment/local", file=str(file))
    verdicts = read_results(tmp_path / "rate")["verdicts"]
    assert [each["num_seeds"] for each in verdicts] == [1], output + running.logs()
    names = ["baseline-1", "fast-1"]
    with running.client() as client:
        flows = {flow.id: flow.name for flow in client.read_flows()}
        runs = client.read_flow_runs(flow_run_filter=FlowRunFilter(
            name=FlowRunFilterName(any_=names)
        ))
    found = sorted((flows[run.flow_id], run.name) for run in runs)
    assert found == [(flow, name) for flow in ("campaign", "variant") for name in names]
    assert all(run.parent_task_run_id for run in runs if flows[run.flow_id] == "variant")
    parent = mlflow_run_of(running, "rate")
    child = mlflow_run_of(running, "fast-1")
    assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
