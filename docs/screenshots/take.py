"""Pictures of a campaign in Prefect and MLflow, taken in a headless Chromium.

    chess-snn up          # and export what it prints
    prefect deployment run campaign/local --watch --param preset=smoke
    prefect deployment run experiment/local --watch --param file=$PWD/batch.toml
    python docs/screenshots/take.py

Shows the newest completed campaign and experiment. Needs Playwright (``pip install playwright``)
and a Chromium of the system (``apt install chromium``), as nothing else of the project does.
"""

import argparse
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlflow.tracking import MlflowClient
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.sorting import FlowRunSort
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from chess_snn.credentials import Credentials
from chess_snn.flows.prefect_access import sign_in_link
from chess_snn.tasks.tracking import PAGES_OF_TRAINING

WIDTH, HEIGHT = 1440, 900
REGISTRY_HEIGHT = 1500
"""Room for the newest versions, among them the champion."""
SETTLE_MS = 2500
"""After everything asked for is on the page: charts are drawn, bars have grown."""
TIMEOUT_MS = 120_000
CURVES = "/(score_random|policy_loss|holdout_value_loss_after|draw_rate)$"
"""Names of the metrics whose charts are shown."""
BEFORE_EACH_PAGE = "localStorage.setItem('mlflow.assistant.fab.autoOpenedOnFirstLoad_v1', 'true')"
"""MLflow opens a panel on a first visit that would hide a third of the page."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture."""

    name: str
    url: str
    awaited: str
    """Text that is on the page once it is complete."""
    height: int = HEIGHT
    """Height of the picture."""
    tab: str = ""
    """Clicked on first."""
    search: tuple[str, str] = ("", "")
    """A field, by what stands in it while it is empty, and what to write into it."""


def prefect_shots(api_url: str) -> list[Shot]:
    """The newest completed iteration, with a task's log and its table; the form; an experiment."""
    page = api_url.removesuffix("/api")
    with temporary_settings({PREFECT_API_URL: api_url}), get_client(sync_client=True) as client:
        flows = {flow.id: flow.name for flow in client.read_flows()}
        runs = [run for run in client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC)
                if run.state_name == "Completed"]
        deployments = {flows[found.flow_id]: found for found in client.read_deployments()}
        newest = {flows[run.flow_id]: run for run in reversed(runs) if run.deployment_id}
        for name in ("campaign", "experiment"):
            if name not in newest:
                sys.exit(f"{page} has no completed {name}; prefect deployment run {name}/local")
        campaign, experiment = newest["campaign"], newest["experiment"]
        iteration = next(
            run for run in runs
            if flows[run.flow_id] == "iteration" and run.start_time < campaign.end_time
        )
        tasks = client.read_task_runs(
            flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[iteration.id]))
        )
        artifacts = client.read_artifacts(
            artifact_filter=ArtifactFilter(flow_run_id={"any_": [iteration.id]})
        )
    played = next(task for task in tasks if task.name.startswith("self_play"))
    table = next(artifact for artifact in artifacts if artifact.type == "table")
    return [
        Shot("prefect-tasks", f"{page}/runs/flow-run/{iteration.id}", "self_play"),
        Shot("prefect-task", f"{page}/runs/task-run/{played.id}", "games/s"),
        Shot("prefect-table", f"{page}/artifacts/artifact/{table.id}", "decision",
             REGISTRY_HEIGHT),
        Shot("prefect-campaign", f"{page}/runs/flow-run/{campaign.id}", "PROGRESS",
             tab="Artifacts"),
        Shot("prefect-form", f"{page}/deployments/deployment/{deployments['campaign'].id}/run",
             "preset", REGISTRY_HEIGHT),
        Shot("prefect-experiment", f"{page}/runs/flow-run/{experiment.id}", "Subflow Runs",
             tab="Subflow Runs"),
    ]


def mlflow_shots(url: str) -> list[Shot]:
    """The campaigns of the experiment, the curves of one, the versions of the model."""
    client = MlflowClient(url)
    experiment = client.get_experiment_by_name("chess-snn")
    found = [] if experiment is None else client.search_runs(
        [experiment.experiment_id], order_by=["attributes.start_time DESC"]
    )
    found = [run for run in found if any("score_random" in name for name in run.data.metrics)]
    if not found:
        sys.exit(f"{url} has no campaign; run one: prefect deployment run campaign/local")
    runs = f"{url}/#/experiments/{experiment.experiment_id}/runs"
    run = f"{runs}/{found[0].info.run_id}"
    return [
        Shot("mlflow-runs", f"{runs}?{PAGES_OF_TRAINING}", found[0].info.run_name),
        Shot("mlflow-curves", f"{run}/model-metrics?{PAGES_OF_TRAINING}", "score_random",
             REGISTRY_HEIGHT, search=("Search metric charts", CURVES)),
        Shot("mlflow-registry", f"{url}/#/models/chess-snn?{PAGES_OF_TRAINING}", "champion",
             REGISTRY_HEIGHT),
    ]


def take(shots: list[Shot], out: Path, chromium: str, sign_in: str, playwright: Any) -> None:
    """Open each page and write its picture."""
    with playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(color_scheme="light")
        page.add_init_script(BEFORE_EACH_PAGE)
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(sign_in)
        page.get_by_text("Dashboard").first.wait_for()  # until it has checked the password
        page.wait_for_timeout(SETTLE_MS)
        for shot in shots:
            page.set_viewport_size({"width": WIDTH, "height": shot.height})
            page.goto(shot.url)
            if shot.tab:
                page.get_by_text(shot.tab, exact=True).last.click()
            field, text = shot.search
            if field:
                page.get_by_placeholder(field).fill(text)
            page.get_by_text(shot.awaited).filter(visible=True).first.wait_for()
            page.wait_for_timeout(SETTLE_MS)
            path = out / f"{shot.name}.png"
            page.screenshot(path=path)
            print(f"{path}: {shot.url}")
        browser.close()


def main() -> None:
    """Parse the command line and take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prefect", default="http://127.0.0.1:4200/api", help="URL of the API")
    parser.add_argument("--mlflow", default="http://127.0.0.1:5000", help="URL of the server")
    parser.add_argument("--out", type=Path, default=Path("docs/screenshots"))
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="the browser")
    arguments = parser.parse_args()
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - of all, it may be missing
    except ModuleNotFoundError:
        sys.exit("Playwright is missing: pip install playwright")
    if arguments.chromium is None:
        sys.exit("Chromium is missing: apt install chromium, or give its path with --chromium")
    arguments.out.mkdir(parents=True, exist_ok=True)
    shots = [*prefect_shots(arguments.prefect), *mlflow_shots(arguments.mlflow)]
    credentials = Credentials.parse(PREFECT_API_AUTH_STRING.value())
    sign_in = sign_in_link(arguments.prefect, credentials)
    take(shots, arguments.out, arguments.chromium, sign_in, sync_playwright)


if __name__ == "__main__":
    main()
